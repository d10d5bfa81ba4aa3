// The API over processes that talk through a NATS server, and not by UDP.
import { launch } from "pamir";
import { afterAll } from "vitest";
import { linked } from "../support/launches.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";
import { apiSuite } from "./api.suite.js";

/** launch() with a process for each task, which share no memory. */
const throughServer: typeof launch = linked((entry, options = {}) => {
  const { tasks = 2, join = false } = options;
  const workers = join ? tasks - 1 : tasks;
  return launch(entry, workers === 0 ? options : { ...options, processes: Math.min(6, workers), link: "nats" });
});

if (NATS_SERVER !== undefined && process.platform === "linux") {
  const server = await NatsServer.start();
  afterAll(() => server.close());
  process.env.PAMIR_NATS = server.url;
  process.env.PAMIR_NATS_DIRECT = "0";
  apiSuite({ name: "a process for each task, NATS, wasm", kernels: ["wasm"], many: 6, launch: throughServer });
}
