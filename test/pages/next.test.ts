// docs/recipes/nextjs.md: its server side on Node, and all of it by Next.js where PAMIR_NEXT names a folder that has it, as
// `npm run test:hosts` makes one.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Browser } from "playwright";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { onPage, openBrowser } from "./support.js";

const HASH = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";

/** The blocks under a heading by the paths of their files. */
function recipe(heading: string): ReadonlyMap<string, string> {
  const page = readFileSync("docs/recipes/nextjs.md", "utf8");
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? expect.fail(heading);
  return new Map(
    [...section.matchAll(/^```js\n(\/\/ (\S+)\n.*?)^```$/gms)].map(([, code = "", name = ""]) => [name, code]),
  );
}

function write(folder: string, files: ReadonlyMap<string, string>): void {
  for (const [name, code] of files) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, code);
  }
}

it("the route handler, without Next.js, answers by a pool of the project's folder", () => {
  const folder = mkdtempSync(resolve(".tmp-next-"));
  try {
    write(folder, recipe("On the server"));
    const program = `
import { GET } from "./app/hash/route.js";
const response = await GET(new Request("http://localhost/hash?text=a"));
console.log(await response.text());
const gone = new AbortController();
const call = GET(new Request("http://localhost/hash?text=a", { signal: gone.signal }));
gone.abort();
await call.catch(({ code }) => console.log(code));`;
    writeFileSync(join(folder, "test.js"), program);
    const run = { cwd: folder, encoding: "utf8", timeout: 200_000 } as const;
    const { status, stdout, stderr } = spawnSync(process.execPath, ["test.js"], run);
    expect({ status, stderr, lines: stdout.trimEnd().split("\n") }).toEqual({
      status: 0,
      stderr: "",
      lines: [`{"hash":"${HASH}"}`, "PAMIR_CANCELED"],
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const { PAMIR_NEXT: root } = process.env;

/** What both sides answer while a server runs. */
async function ask(browser: Browser, cwd: string, args: string[]): Promise<unknown> {
  const port = await freePort();
  const env = {
    ...process.env,
    PORT: `${port}`,
    HOSTNAME: "localhost",
    NODE_ENV: undefined,
    NEXT_TELEMETRY_DISABLED: "1",
  };
  const server = spawn(process.execPath, args, { cwd, env, stdio: ["ignore", "ignore", "inherit"] });
  const closed = once(server, "close");
  try {
    const url = `http://localhost:${port}`;
    const isUp = (): Promise<boolean> =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      );
    while (server.exitCode === null && !(await isUp())) await new Promise((r) => setTimeout(r, 100));
    const { hash } = (await (await fetch(`${url}/hash?text=a`)).json()) as { hash: string };
    const shown = await onPage(browser, url, async (page) => {
      const text = `document.querySelector("#out")?.textContent`;
      await page.waitForFunction(`${text}?.startsWith("12")`);
      return { text: await page.evaluate(text), isIsolated: await page.evaluate(() => crossOriginIsolated) };
    });
    return { hash, ...shown };
  } finally {
    server.kill();
    await closed;
  }
}

describe.skipIf(root === undefined)("by Next.js (not run where npm run test:hosts has not installed it)", () => {
  const folder = root as string;
  const next = "node_modules/next/dist/bin/next";
  const expected = { hash: HASH, text: "12 squared is 144", isIsolated: true };
  let browser: Browser;

  beforeAll(async () => {
    browser = await openBrowser();
    const packed = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder]);
    const installed = join(folder, "node_modules", "pamir");
    mkdirSync(installed, { recursive: true });
    execFileSync("tar", ["-xzf", join(folder, packed.toString().trim()), "-C", installed, "--strip-components=1"]);
    writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
    for (const files of [recipe("On the server"), recipe("In the page"), recipe("next.config.mjs")])
      write(folder, files);
  });
  afterAll(() => browser.close());

  function build(...args: string[]): void {
    const env = { ...process.env, NODE_ENV: undefined, NEXT_TELEMETRY_DISABLED: "1" };
    rmSync(join(folder, ".next"), { recursive: true, force: true });
    execFileSync(process.execPath, [next, "build", ...args], {
      cwd: folder,
      env,
      stdio: ["ignore", "ignore", "inherit"],
    });
  }

  it("next dev", { timeout: 600_000 }, async () => {
    expect(await ask(browser, folder, [next, "dev"])).toEqual(expected);
  });

  it("next build --webpack, and next start", { timeout: 600_000 }, async () => {
    build("--webpack");
    expect(await ask(browser, folder, [next, "start"])).toEqual(expected);
  });

  it("next build by Turbopack, and the folder of Standalone, at another place", { timeout: 600_000 }, async () => {
    const headers = readFileSync(join(folder, "next.config.mjs"), "utf8");
    const elsewhere = mkdtempSync(`${folder}-standalone-`);
    try {
      write(folder, recipe("Standalone"));
      build();
      cpSync(join(folder, ".next", "standalone"), elsewhere, { recursive: true });
      cpSync(join(folder, ".next", "static"), join(elsewhere, ".next", "static"), { recursive: true });
      expect(existsSync(join(elsewhere, "workers", "hash.js"))).toBe(true);
      expect(await ask(browser, elsewhere, ["server.js"])).toEqual({ ...expected, isIsolated: false });
    } finally {
      writeFileSync(join(folder, "next.config.mjs"), headers);
      rmSync(elsewhere, { recursive: true });
    }
  });
});
