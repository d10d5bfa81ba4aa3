// The API's suite over pamir/web: task 0 is this process; the others are pages of a real browser, workers, and processes.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright";
import { afterAll, beforeAll } from "vitest";
import { apiSuite } from "../conformance/api.suite.js";
import { filesOf, openBrowser } from "./support.js";
import { buildTasks, webLaunch } from "./web-launch.js";

let browser: Browser;
let server: Server;
let folder: string;
let url: string;
let remove = (): void => {};

beforeAll(async () => {
  browser = await openBrowser();
  ({ folder, remove } = await buildTasks());
  server = createServer(filesOf(folder));
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  url = `http://localhost:${(server.address() as AddressInfo).port}/`;
});

afterAll(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
  remove();
});

const by = () => ({ folder, url, newPage: () => browser.newPage() });

apiSuite({ name: "pages, wasm and twin", kernels: ["wasm", "ts"], many: 8, launch: webLaunch(by, ["page"]) });
apiSuite({
  name: "workers of pages, and processes",
  kernels: ["wasm"],
  many: 8,
  launch: webLaunch(by, ["worker", "process"]),
});
