// launch() of jobs that pamir/web carries: task 0 is this process, and each other one is a page, a worker of a page, or a
// process of its own. It is the monitor too: it ends what has failed, and says why.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type BuildOptions, build, type Plugin } from "esbuild";
import type { KernelName, TaskExit } from "pamir";
import { host } from "pamir/web";
import type { SuiteLaunch } from "../conformance/api.suite.js";
import type { Ended } from "./programs/task.js";
import type { AnyPage } from "./web-hosted.js";

/** Milliseconds: a day. No end that a test waits for may be that of the silence. */
const SILENCE = 86_400_000;
const HEAD = '<!doctype html><link rel="icon" href="data:,">';
const FILES = {
  "page-wasm.html": `${HEAD}<script type="module" src="peer.js"></script>`,
  // Scripts, but no WebAssembly: that would be 'wasm-unsafe-eval'.
  "page-ts.html": `${HEAD}<meta http-equiv="Content-Security-Policy" content="script-src 'self'">
    <script type="module" src="peer.js"></script>`,
  "worker.html": `${HEAD}<script type="module">
      globalThis.begin = (...given) => new Promise((resolve, reject) => {
        const worker = new Worker("peer.js", { type: "module" });
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = reject;
        worker.postMessage(given);
      });
    </script>`,
};

const JOINED = fileURLToPath(new URL("programs/joined.ts", import.meta.url));
/** Task modules import an attach() that joins by a ticket. */
const ATTACH: Plugin = {
  name: "attach",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^pamir$/ }, ({ importer }) => (importer === JOINED ? undefined : { path: JOINED })),
};

/** A folder of the project, so that processes find the package by its name: the task for pages, and for processes. */
export async function buildTasks(): Promise<{ readonly folder: string; remove(): void }> {
  const folder = mkdtempSync(resolve(".tmp-tasks-"));
  const entryPoints = [fileURLToPath(new URL("programs/task.ts", import.meta.url))];
  const common: BuildOptions = { entryPoints, bundle: true, format: "esm", logLevel: "error", plugins: [ATTACH] };
  await build({ ...common, outfile: join(folder, "peer.js") });
  await build({ ...common, outfile: join(folder, "peer.mjs"), platform: "node", external: ["pamir"] });
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Where a task is run. */
export type Place = "page" | "worker" | "process";

export interface WebLaunch {
  /** Of buildTasks(), and where it is served. */
  readonly folder: string;
  readonly url: string;
  readonly newPage: () => Promise<AnyPage>;
}

/** What a task is run by. */
interface Runner {
  /** Runs the task module; rejects if it is ended before it has come to an end. */
  begin(ticket: string, args: unknown): Promise<Ended>;
  end(): Promise<unknown>;
}

/** A promise until its module has run. Where that takes longer, waitForFunction() of Firefox calls Function(), which the page forbids. */
const LOADED = `new Promise((done) => {
  const look = () => (globalThis.begin === undefined ? setTimeout(look, 10) : done());
  look();
})`;

async function openPage({ url, newPage }: WebLaunch, file: string): Promise<Runner> {
  const page = await newPage();
  await page.goto(`${url}${file}`);
  await page.evaluate(LOADED);
  return {
    begin: (ticket, args) =>
      page.evaluate(`begin(${JSON.stringify(ticket)}, ${JSON.stringify(args)})`) as Promise<Ended>,
    end: () => page.close(),
  };
}

function openProcess({ folder }: WebLaunch): Runner {
  const child: ChildProcess = fork(join(folder, "peer.mjs"));
  const exited = once(child, "exit");
  return {
    async begin(...given) {
      child.send(given);
      const [ended] = await Promise.race([
        once(child, "message"),
        exited.then(() => Promise.reject(new Error("killed"))),
      ]);
      return ended as Ended;
    },
    end() {
      child.kill();
      return exited;
    },
  };
}

/** As launch(), for a caller that joins. Tasks from 1 on are run at these places, in turn. */
export function webLaunch(by: () => WebLaunch, places: readonly Place[]): SuiteLaunch {
  return async (_, options) => {
    const { tasks = 2, kernel, args, onExit, contexts, laneBytes, heapBytes } = options;
    const pages = Math.max(1, tasks - 1);
    const memory = { contexts, laneBytes, heapBytes };
    const job = await host({ listen: "ws://127.0.0.1:0/", insecure: true, pages, silence: SILENCE, ...memory });
    const { client } = job;

    const open = async (task: number): Promise<Runner> => {
      const place = places[(task - 1) % places.length];
      if (place === "process") return openProcess(by());
      return openPage(
        by(),
        place === "worker" ? "worker.html" : `page-${(kernel as readonly KernelName[])[task]}.html`,
      );
    };
    const numbers = Array.from({ length: tasks - 1 }, (__, i) => i + 1);
    const runners = await Promise.all(numbers.map(open));
    const running: Promise<TaskExit>[] = [];
    // Nodes are numbered as they join.
    for (const [place, runner] of runners.entries()) {
      const task = place + 1;
      const { ticket, joined } = job.invite();
      const ended = runner.begin(ticket, args).then(
        ({ error, errorCode, stack }): TaskExit =>
          error === undefined
            ? { task, code: 0, cause: "exit" }
            : { task, code: 1, cause: "error", error, errorCode, stack },
        (): TaskExit => ({ task, code: 1, cause: "terminated" }),
      );
      running.push(
        ended.then(async (exit) => {
          await runner.end();
          onExit?.(exit);
          return exit;
        }),
      );
      await Promise.race([joined, ended]);
    }
    const exited = Promise.all(running);
    return {
      client,
      exited,
      async terminate() {
        await Promise.all(runners.map((runner) => runner.end()));
        await exited;
        await job.close();
      },
    };
  };
}
