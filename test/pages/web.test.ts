// pamir/web: pages of a real browser that join a job of this process, or of another one, by tickets.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { SHUTDOWN } from "pamir";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { DOUBLE } from "./programs/web-page.js";
import { ISOLATION, openBrowser } from "./support.js";
import { buildPages, type Hosted, hosted as hostedIn, talk, until } from "./web-hosted.js";

let browser: Browser;
let folder: string;
let remove = (): void => {};

beforeAll(async () => {
  browser = await openBrowser();
  ({ folder, remove } = await buildPages());
});

afterAll(async () => {
  await browser?.close();
  remove();
});

const hosted = (headers: Record<string, string>, body: (given: Hosted<Page>) => Promise<void>): Promise<void> =>
  hostedIn(folder, headers, () => browser.newPage(), body);

it.each([
  ["isolated", ISOLATION],
  ["not isolated", {}],
])("a page that is %s joins: calls, large payloads, puts, a geometry; it leaves", (name, headers) =>
  hosted(headers, async (given) => {
    const { calls } = await given.open();
    await talk(given, calls);
    expect(await calls.info()).toMatchObject({ isIsolated: name === "isolated" });
  }),
);

it("a worker of a page joins", () =>
  hosted({}, async (given) => {
    const { calls } = await given.open(undefined, "worker.html");
    await talk(given, calls);
  }));

it.each([
  ["a page whose process crashes", "", (page: Page) => void page.goto("chrome://crash").catch(() => {})],
  ["a worker that its page ends", "worker.html", (page: Page) => page.evaluate("endWorker()")],
])("%s: the host hears SHUTDOWN at once", (_, file, end) =>
  hosted({}, async ({ context, open }) => {
    const { page, calls } = await open(undefined, file);
    expect(await calls.start()).toBe(1);
    expect(await calls.double(0, 1)).toBe(2);
    const ended = new Promise<number>((done) => context.whenEnded(1, (_: unknown, result: number) => done(result)));
    await end(page);
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
