// The API's suite over pamir/web, in whichever browser: task 0 is this process; the others are pages, workers of pages, and
// processes.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll } from "vitest";
import { apiSuite } from "../conformance/api.suite.js";
import { filesOf } from "./support.js";
import type { AnyPage } from "./web-hosted.js";
import { buildTasks, webLaunch } from "./web-launch.js";

interface AnyBrowser {
  newPage(): Promise<AnyPage>;
  close(): Promise<unknown>;
}

/** Declares the suites. A browser is opened before their first test. */
export function webSuites(open: () => Promise<AnyBrowser>): void {
  let browser: AnyBrowser;
  let server: Server;
  let folder: string;
  let url: string;
  let remove = (): void => {};

  beforeAll(async () => {
    browser = await open();
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
}
