// Scopes of a browser in which no task runs: what the calls say there, as docs/hosts.md has it.
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { filesOf } from "../../scripts/serve.mjs";
import { ISOLATION, onPage, openBrowser, serve } from "./support.js";

const PROBE = `
import { attach, info, launch } from "./index.js";
export const said = async () => {
  const codeOf = (promise) => promise.then(() => "resolved", ({ code, message }) => [code, message]);
  return {
    mode: info().mode,
    attach: await codeOf(attach()),
    launch: await codeOf(launch("http://localhost/task.js", { tasks: 2 })),
    alone: await codeOf(launch(null, { tasks: 1, join: true })),
  };
};
`;
const SCRIPTS: Readonly<Record<string, string>> = {
  "/probe.js": PROBE,
  "/shared.js":
    'import { said } from "./probe.js"; onconnect = async ({ ports: [port] }) => port.postMessage(await said());',
  "/service.js": `import { said } from "./probe.js";
    oninstall = () => skipWaiting();
    onmessage = (event) => event.waitUntil(said().then((answer) => event.source.postMessage(answer)));`,
  "/audio.js": `import { said } from "./probe.js";
    registerProcessor("probe", class extends AudioWorkletProcessor {
      constructor() { super(); void said().then((answer) => this.port.postMessage(answer)); }
      process() { return true; }
    });`,
};
const NOT_IN_JOB = ["PAMIR_NOT_IN_JOB", expect.stringContaining("no job started")];

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());

/** What a scope answers. @param start runs on the page, and resolves with the answer */
function answer(start: Parameters<Page["evaluate"]>[0]): Promise<unknown> {
  const files = filesOf("dist", ISOLATION);
  return serve(
    (request, response) => {
      const script = SCRIPTS[request.url as string];
      if (script === undefined && request.url !== "/") return files(request, response);
      response.setHeader("content-type", script === undefined ? "text/html" : "text/javascript");
      for (const [name, value] of Object.entries(ISOLATION)) response.setHeader(name, value);
      response.end(script ?? "<!doctype html><title>page</title>");
    },
    (url) => onPage(browser, url, (page) => page.evaluate(start)),
  );
}

it("a shared worker: no workers of its own, one task works", async () => {
  const said = await answer(`new Promise((resolve, reject) => {
    const worker = new SharedWorker("shared.js", { type: "module" });
    worker.onerror = reject;
    worker.port.onmessage = ({ data }) => resolve(data);
  })`);
  const launch = ["PAMIR_NO_WORKERS", "launch() of 2 tasks: this host has no workers. One task with join: true works"];
  expect(said).toEqual({ mode: "alone", attach: NOT_IN_JOB, launch, alone: "resolved" });
});

it.each([
  [
    "a service worker",
    `navigator.serviceWorker.register("service.js", { type: "module" }).then(() => navigator.serviceWorker.ready).then(
      ({ active }) => new Promise((resolve) => {
        navigator.serviceWorker.onmessage = ({ data }) => resolve(data);
        active.postMessage("go");
      }))`,
  ],
  [
    "an AudioWorklet",
    `(async () => {
      const audio = new OfflineAudioContext(1, 128, 44100);
      await audio.audioWorklet.addModule("audio.js");
      const node = new AudioWorkletNode(audio, "probe");
      return new Promise((resolve) => {
        node.port.onmessage = ({ data }) => resolve(data);
        void audio.startRendering();
      });
    })()`,
  ],
])("%s: no task at all", async (name, start) => {
  const why = `${name} runs no tasks: its page may launch them`;
  expect(await answer(start)).toEqual({
    mode: "alone",
    attach: NOT_IN_JOB,
    launch: ["PAMIR_NO_WORKERS", `launch(): ${why}`],
    alone: ["PAMIR_NO_WORKERS", `launch(): ${why}`],
  });
});
