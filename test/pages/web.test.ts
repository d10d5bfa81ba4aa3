// pamir/web: pages of a real browser that join a job of this process, or of another one, by tickets.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { type Context, type Result, SHUTDOWN, SUCCESS } from "pamir";
import { type Host, host } from "pamir/web";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../support/ssh.js";
import { BULK, DOUBLE, type WebPage } from "./programs/web-page.js";
import { filesOf, ISOLATION, openBrowser, serve } from "./support.js";

const BYTES = 2 ** 21;
/** Milliseconds: a day. No end that a test waits for may be that of the silence. */
const SILENCE = 86_400_000;

let browser: Browser;
/** In a folder of the project, so that programs find the package by its name. */
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(resolve("test/.tmp-web-"));
  await build({
    entryPoints: [fileURLToPath(new URL("programs/web-page.ts", import.meta.url))],
    outfile: join(folder, "main.js"),
    bundle: true,
    format: "esm",
    logLevel: "error",
  });
  writeFileSync(
    join(folder, "index.html"),
    '<!doctype html><link rel="icon" href="data:,"><script type="module" src="main.js"></script>',
  );
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The test's own limit ends a wait that has no end. */
const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await isSo())) await new Promise((done) => setTimeout(done, 10));
};

/** Calls a function of a page's program. */
type Calls = {
  [Name in keyof WebPage]: (...given: Parameters<WebPage[Name]>) => Promise<Awaited<ReturnType<WebPage[Name]>>>;
};
function callsOf(page: Page): Calls {
  const call =
    (name: string) =>
    (...given: unknown[]): Promise<unknown> =>
      page.evaluate(`page.${name}(${given.map((one) => JSON.stringify(one)).join(", ")})`);
  return new Proxy({} as Calls, { get: (_, name: string) => call(name) });
}

interface Hosted {
  readonly job: Host;
  readonly context: Context;
  readonly bulks: () => number;
  /** Opens a page, which joins by a ticket. */
  open(ticket?: string): Promise<{ readonly page: Page; readonly calls: Calls }>;
}

async function hosted(headers: Record<string, string>, body: (given: Hosted) => Promise<void>): Promise<void> {
  const job = await host({ listen: "ws://127.0.0.1:0/", insecure: true, heapBytes: 2 ** 24, silence: SILENCE });
  const context = job.client.createContext();
  let bulks = 0;
  context.dispatch(DOUBLE, (message) => Int32Array.of(2 * message.getInt32(0)));
  context.dispatch(BULK, (message) => {
    const into = new Uint8Array(message.payloadBytes);
    message.receive(into, (_, result) => {
      if (result === SUCCESS && into.every((byte, i) => byte === (i & 255))) bulks++;
    });
  });
  const pumping = (async () => {
    while (!context.closed) await context.progress().catch(() => {});
  })();
  const pages: Page[] = [];
  try {
    await serve(filesOf(folder, headers), async (url) => {
      const open: Hosted["open"] = async (ticket = job.invite().ticket) => {
        const page = await browser.newPage();
        pages.push(page);
        await page.goto(`${url}#${ticket}`);
        await page.waitForFunction("globalThis.page !== undefined");
        return { page, calls: callsOf(page) };
      };
      await body({ job, context, bulks: () => bulks, open });
      for (const page of pages) await page.close();
    });
  } finally {
    await job.close();
    await pumping;
  }
}

it.each([
  ["isolated", ISOLATION],
  ["not isolated", {}],
])("a page that is %s joins: calls, large payloads, puts, a geometry; it leaves", (name, headers) =>
  hosted(headers, async ({ job, context, bulks, open }) => {
    const { calls } = await open();
    expect(await calls.start()).toBe(1);
    expect(await calls.info()).toMatchObject({ isIsolated: name === "isolated" });
    expect([job.client.size, await calls.size()]).toEqual([2, 2]);
    expect(await calls.double(0, 21)).toBe(42);
    const reply = await context.call(1, DOUBLE, Int32Array.of(4), { timeout: 60_000 });
    expect(new DataView(reply.buffer, reply.byteOffset).getInt32(0, true)).toBe(8);

    const payload = Uint8Array.from({ length: BYTES }, (_, i) => i);
    const there = new Promise<Result>((done) => {
      context.send({ to: 1, dispatch: BULK, payload, onLocal: () => {}, onRemote: (_, result) => done(result) });
    });
    expect(await Promise.all([there, calls.bulk(0, BYTES)])).toEqual([SUCCESS, SUCCESS]);
    await until(async () => bulks() === 1 && (await calls.bulks()) === 1);

    const region = job.client.createRegion(4096);
    const view = new DataView(region.bytes.buffer, region.bytes.byteOffset);
    await calls.put(0, region.handle, 1234);
    expect(view.getInt32(0, true)).toBe(1234);
    view.setInt32(64, 4321, true);
    context.put({ to: 1, local: region, localOffset: 64, remote: await calls.open(), bytes: 4 });
    await context.flush({ timeout: 60_000 });
    expect(await calls.word()).toBe(4321);

    const make = async (): Promise<number[]> => {
      const geometry = await job.client.createGeometry([0, 1]);
      await geometry.barrier();
      const receive = new Int32Array(1);
      await geometry.allreduce({ send: Int32Array.of(1), receive, operation: "sum" });
      return [...receive];
    };
    expect(await Promise.all([make(), calls.geometry([0, 1])])).toEqual([[3], [3]]);

    const ended = new Promise<number>((done) => context.whenEnded(1, (_: unknown, result: number) => done(result)));
    await calls.close();
    expect(await ended).toBe(SHUTDOWN);
  }),
);

it("pages talk with each other; one is reloaded, one is closed: the others hear SHUTDOWN at once", () =>
  hosted({}, async ({ job, context, open }) => {
    const [first, second, third] = [await open(), await open(), await open()];
    expect([await first.calls.start(), await second.calls.start(), await third.calls.start()]).toEqual([1, 2, 3]);
    await until(async () => (await first.calls.size()) === 4);
    expect(await first.calls.double(2, 5)).toBe(10);
    expect(await third.calls.double(1, 6)).toBe(12);
    const sums = [first, second, third].map(({ calls }) => calls.geometry([1, 2, 3]));
    expect(await Promise.all(sums)).toEqual([[9], [9], [9]]);

    const heard: [number, number][] = [];
    for (const task of [2, 3]) context.whenEnded(task, (_: unknown, result: number) => heard.push([task, result]));
    await first.calls.watch(2);
    await first.calls.watch(3);
    await second.page.reload();
    await until(() => heard.length === 1);
    await third.page.close();
    await until(() => heard.length === 2);
    await until(async () => (await first.calls.ends()).length === 2);
    expect(heard).toEqual([
      [2, SHUTDOWN],
      [3, SHUTDOWN],
    ]);
    expect(await first.calls.ends()).toEqual(heard);

    // The reloaded page has the ticket in its URL still.
    await second.page.waitForFunction("globalThis.page !== undefined");
    expect(await second.calls.fail((await second.page.evaluate("location.hash.slice(1)")) as string)).toBe(
      "PAMIR_TICKET_USED",
    );
    expect(await second.calls.fail(`${job.invite().ticket.slice(0, 20)}`)).toBe("PAMIR_TICKET");
    expect(context.sendImmediate(3, DOUBLE, null, Int32Array.of(1))).toBe(SHUTDOWN);
  }));

/** The js blocks under a heading of docs/machines.md, by the file's name in their first line. */
function recipe(heading: string): Map<string, string> {
  const section = readFileSync("docs/machines.md", "utf8").split(`## ${heading}\n`)[1]?.split("\n## ")[0] as string;
  const found = section.matchAll(/```js\n\/\/ ([\w.]+)\n([\s\S]*?)^```$/gm);
  return new Map([...found].map(([, name, code]) => [name as string, code as string]));
}

it("the example of docs/machines.md; its process ends, and the page hears SHUTDOWN", async () => {
  const ports = { 7117: await freePort(), 8080: await freePort() };
  // The page of the example ends with the call: this watches what comes later.
  const later = `
    context.whenEnded(0, (_, result) => { document.title = "task 0: " + result; });
    while (!context.closed) await context.progress();`;
  // A process that exits, as SIGTERM would have it.
  const exit = 'process.once("SIGTERM", () => process.exit(0));\n';
  const files = recipe("Pages of browsers");
  let code = files.get("server.js") as string;
  for (const [port, other] of Object.entries(ports)) code = code.replaceAll(port, `${other}`);
  writeFileSync(join(folder, "server.js"), exit + code);
  writeFileSync(join(folder, "page.js"), files.get("page.js") + later);
  await build({
    entryPoints: [join(folder, "page.js")],
    outfile: join(folder, "bundle.js"),
    bundle: true,
    format: "esm",
    logLevel: "error",
  });
  const server: ChildProcess = spawn(process.execPath, ["server.js"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  server.stdout?.on("data", (text) => {
    output += text;
  });
  try {
    const url = `http://localhost:${ports[8080]}/`;
    await until(async () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    const [page, other] = [await browser.newPage(), await browser.newPage()];
    await page.goto(url);
    await page.waitForFunction(() => document.title === "task 1 got 42");
    await other.goto(url);
    await other.waitForFunction(() => document.title === "task 2 got 42");
    await other.close();
    await until(() => output.includes("task 2 has ended"));
    server.kill();
    await page.waitForFunction((result) => document.title === `task 0: ${result}`, SHUTDOWN);
    expect(output.split("\n").slice(0, 3)).toEqual([
      "a page has joined as task 1",
      "a page has joined as task 2",
      "task 2 has ended",
    ]);
    await page.close();
  } finally {
    server.kill("SIGKILL");
  }
});
