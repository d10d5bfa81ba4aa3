// What befalls a page: it is frozen and goes on, two jobs run on it, a worker's script comes without its header.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { filesOf, onPage, openBrowser, serving } from "./support.js";

/** An echo, as often as it is asked. */
const TASK = `
import { attach } from "pamir";
const client = await attach();
const context = client.createContext();
context.dispatch(1, (message) => context.sendImmediate(message.origin, 2, null, message.payload.slice()));
context.advanceUntil(() => false);
`;
/** `jobs`: started jobs; `echo(job, number)`: what its task makes of it; `move(job, byte)`: what a large put has written. */
const MAIN = `
import { launch } from "pamir";
globalThis.pamir = {
  jobs: [],
  async start(engine) {
    const options = { tasks: 2, join: true, heapBytes: 2 ** 24, engine };
    const job = await launch(new URL("./task.js", import.meta.url), options);
    const context = job.client.createContext();
    const heard = [];
    context.dispatch(2, (message) => void heard.push(message.getInt32(0)));
    this.jobs.push({ job, context, heard });
  },
  async echo(index, number) {
    const { job, context, heard } = this.jobs[index];
    context.sendImmediate(job.client.endpoint(1), 1, null, Int32Array.of(number));
    while (!heard.includes(number)) await context.progress({ timeout: 100_000 });
    return heard.at(-1);
  },
  async move(index, byte) {
    const { job, context } = this.jobs[index];
    const [local, remote] = [job.client.createRegion(2 ** 20), job.client.createRegion(2 ** 20)];
    local.bytes.fill(byte);
    context.put({ to: context.endpoint, local, remote: remote.handle });
    await context.flush({ timeout: 100_000 });
    return [remote.bytes.at(0), remote.bytes.at(-1), job.engine];
  },
};
`;

let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-lifecycle-"));
  for (const [name, contents] of [
    ["main", MAIN],
    ["task", TASK],
  ] as const) {
    await build({
      stdin: { contents, resolveDir: process.cwd() },
      outfile: join(folder, `${name}.js`),
      bundle: true,
      format: "esm",
    });
  }
  writeFileSync(
    join(folder, "index.html"),
    '<!doctype html><link rel="icon" href="data:,"><script type="module" src="main.js"></script>',
  );
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A page of it; scripts named in `bare` come without the header that lets them be a worker of an isolated page. */
function visit<T>(body: (page: Page) => Promise<T>, bare: readonly string[] = []): Promise<T> {
  const answer = filesOf(folder);
  const server = createServer((request, response) => {
    if (!bare.includes(request.url ?? "")) response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
    response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
    answer(request, response);
  });
  return serving(server, (url) =>
    onPage(browser, url, async (page) => {
      await page.waitForFunction("globalThis.pamir !== undefined");
      return await body(page);
    }),
  );
}

it.each(["inline", "thread"])("frozen and restored, it goes on; engine %s", (engine) =>
  visit(async (page) => {
    await page.evaluate(`pamir.start("${engine}")`);
    expect(await page.evaluate("pamir.echo(0, 1)")).toBe(1);
    expect(await page.evaluate("pamir.move(0, 1)")).toEqual([1, 1, engine]);
    const session = await page.context().newCDPSession(page);
    // It is frozen while it waits for the answer.
    const waiting = page.evaluate("pamir.echo(0, 2)");
    await session.send("Page.setWebLifecycleState", { state: "frozen" });
    await new Promise((resolve) => setTimeout(resolve, 500));
    await session.send("Page.setWebLifecycleState", { state: "active" });
    expect(await waiting).toBe(2);
    expect(await page.evaluate("pamir.echo(0, 3)")).toBe(3);
    expect(await page.evaluate("pamir.move(0, 3)")).toEqual([3, 3, engine]);
    expect(await page.evaluate("pamir.jobs[0].job.terminate()")).toMatchObject([{ task: 1, cause: "terminated" }]);
  }),
);

it("two jobs at once, and a third after them", () =>
  visit(async (page) => {
    await page.evaluate("Promise.all([pamir.start(), pamir.start()])");
    expect(await page.evaluate("Promise.all([pamir.echo(0, 3), pamir.echo(1, 4)])")).toEqual([3, 4]);
    await page.evaluate("Promise.all(pamir.jobs.map(({ job }) => job.terminate()))");
    await page.evaluate("pamir.start()");
    expect(await page.evaluate("pamir.echo(2, 5)")).toBe(5);
  }));

it("a worker's script without its header: the error has no text, so it says what it probably is", () =>
  visit(
    async (page) => {
      await page.evaluate("pamir.start()");
      const [exit] = (await page.evaluate("pamir.jobs[0].job.exited")) as [{ cause: string; error: string }];
      expect(exit.cause).toBe("error");
      expect(exit.error).toMatch(/task\.js: its script was not loaded: .*Cross-Origin-Embedder-Policy: require-corp/);
    },
    ["/task.js"],
  ));
