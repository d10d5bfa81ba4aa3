// What tests of pamir/web share, in whichever browser: a folder with the page's program, and a job that pages join.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { type Context, type Result, SHUTDOWN, SUCCESS } from "pamir";
import { type Host, host } from "pamir/web";
import { expect } from "vitest";
import { BULK, DOUBLE, type WebPage } from "./programs/web-page.js";
import { filesOf, serve } from "./support.js";

/** Milliseconds: a day. No end that a test waits for may be that of the silence. */
const SILENCE = 86_400_000;
const BYTES = 2 ** 21;
const ICON = '<!doctype html><link rel="icon" href="data:,">';

/** The part of a page that the tests use: of Playwright's, and of Puppeteer's. */
export interface AnyPage {
  goto(url: string): Promise<unknown>;
  evaluate(text: string): Promise<unknown>;
  waitForFunction(text: string): Promise<unknown>;
  close(): Promise<unknown>;
}

/** A folder of the project, so that programs find the package by its name: a page, and one whose worker has the program. */
export async function buildPages(): Promise<{ readonly folder: string; remove(): void }> {
  const folder = mkdtempSync(resolve(".tmp-web-"));
  await build({
    entryPoints: [fileURLToPath(new URL("programs/web-page.ts", import.meta.url))],
    outfile: join(folder, "main.js"),
    bundle: true,
    format: "esm",
    logLevel: "error",
  });
  writeFileSync(join(folder, "index.html"), `${ICON}<script type="module" src="main.js"></script>`);
  writeFileSync(
    join(folder, "worker.html"),
    `${ICON}<script type="module">
      const worker = new Worker("main.js" + location.hash, { type: "module" });
      let last = Promise.resolve();
      // One call at a time: the next message is its answer.
      const call = (name, given) => (last = last.then(() => new Promise((resolve) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.postMessage([name, given]);
      })));
      globalThis.page = new Proxy({}, { get: (_, name) => (...given) => call(name, given) });
      globalThis.endWorker = () => worker.terminate();
    </script>`,
  );
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The test's own limit ends a wait that has no end. */
export const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await isSo())) await new Promise((done) => setTimeout(done, 10));
};

/** Calls a function of a page's program. */
export type Calls = {
  [Name in keyof WebPage]: (...given: Parameters<WebPage[Name]>) => Promise<Awaited<ReturnType<WebPage[Name]>>>;
};
function callsOf(page: AnyPage): Calls {
  const call =
    (name: string) =>
    (...given: unknown[]): Promise<unknown> =>
      page.evaluate(`page.${name}(${given.map((one) => JSON.stringify(one)).join(", ")})`);
  return new Proxy({} as Calls, { get: (_, name: string) => call(name) });
}

export interface Hosted<Page> {
  readonly job: Host;
  readonly context: Context;
  readonly bulks: () => number;
  /** Opens a page, which joins by a ticket. @param file index.html, or worker.html */
  open(ticket?: string, file?: string): Promise<{ readonly page: Page; readonly calls: Calls }>;
}

/** Hosts a job, and serves the pages of a folder with `headers`. */
export async function hosted<Page extends AnyPage>(
  folder: string,
  headers: Record<string, string>,
  newPage: () => Promise<Page>,
  body: (given: Hosted<Page>) => Promise<void>,
): Promise<void> {
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
      const open: Hosted<Page>["open"] = async (ticket = job.invite().ticket, file = "") => {
        const page = await newPage();
        pages.push(page);
        await page.goto(`${url}${file}#${ticket}`);
        await page.waitForFunction("globalThis.page !== undefined");
        return { page, calls: callsOf(page) };
      };
      await body({ job, context, bulks: () => bulks, open });
      // A page may have crashed.
      for (const page of pages) await page.close().catch(() => {});
    });
  } finally {
    await job.close();
    await pumping;
  }
}

/** A page joins: calls, large payloads, puts, a geometry, each in both directions; it leaves. */
export async function talk<Page>({ job, context, bulks }: Hosted<Page>, calls: Calls): Promise<void> {
  expect(await calls.start()).toBe(1);
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
}
