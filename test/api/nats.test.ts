// attach({ nats, job, nodes }): processes that name their job themselves.
import { afterAll, describe, expect, it } from "vitest";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";
import { run } from "./run-program.js";

const start = (given: unknown, env: Record<string, string> = {}, ...args: string[]) =>
  run([], [JSON.stringify(given), ...args], { env: { ...process.env, PAMIR_INSECURE: "1", ...env } }, "nats-attach.js");

describe.skipIf(NATS_SERVER === undefined)("processes that name a job at a server", async () => {
  const server = NATS_SERVER === undefined ? undefined : await NatsServer.start();
  afterAll(() => server?.close());

  it.each([
    ["with the processes of a machine in one memory", {}],
    ["with nodes of their own, and an option of the job's", { PAMIR_OPTIONS: '{"contexts":2}' }],
  ])("become its tasks, %s", async (how, env) => {
    const given = { nats: server?.url, job: "named", nodes: 3 };
    const all = [0, 1, 2].map((node) =>
      start(given, { ...env, ...(how.includes("own") ? { PAMIR_NODE: `${node}` } : {}) }),
    );
    expect(await Promise.all(all)).toEqual(all.map(() => ({ out: "3 tasks, sum 3\n", err: "", code: 0 })));
  });

  it.each([
    ["the short way", {}],
    ["the server", { PAMIR_NATS_DIRECT: "0" }],
  ])("end by themselves, with agents on the tasks' threads and %s", async (_, env) => {
    const given = { nats: server?.url, job: "inline", nodes: 3 };
    const all = [0, 1, 2].map(() => start(given, { ...env, PAMIR_OPTIONS: '{"agent":"inline"}' }, "open"));
    expect(await Promise.all(all)).toEqual(all.map(() => ({ out: "3 tasks, sum 3\n", err: "", code: 0 })));
  });
});

it.each([
  [{ nats: 1, job: "a", nodes: 2 }, "nats of the job of attach() is 1, not a text"],
  [{ nats: "nats://127.0.0.1:1", nodes: 2 }, "job of the job of attach() is undefined, not a text"],
  [
    { nats: "nats://127.0.0.1:1", job: "a", nodes: 0 },
    "nodes of the job of attach() is 0, not an integer from 1 to 65536",
  ],
  [
    { nats: "nats://127.0.0.1:1", job: "a", nodes: 2, tasks: 2 },
    'the job of attach(): there is no "tasks", but nats, job, nodes, spare, later',
  ],
  [
    { nats: "nats://127.0.0.1:1", job: "a", later: true, spare: 2 },
    "spare of the job of attach() is 2: it is for processes with nodes",
  ],
  [
    { nats: "nats://127.0.0.1:1", job: "a", nodes: 2, spare: 65535 },
    "spare of the job of attach() is 65535, not an integer from 0 to 65534",
  ],
  [{ nats: "nats://127.0.0.1:1", job: "a", later: 1 }, "later of the job of attach() is 1, not true or false"],
])("%j is refused", async (given, message) => {
  expect((await start(given)).out).toBe(`PAMIR_INVAL: ${message}\n`);
});
