// docs/tutorial.md, step 10: the page and its server as they stand there, over the package as it is built.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { filesOf, onPage, openBrowser, serve } from "./support.js";

/** The code blocks under a heading. */
function recipe(heading: string): string[] {
  const page = readFileSync("docs/tutorial.md", "utf8");
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? expect.fail(heading);
  return [...section.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, code]) => code as string);
}

let browser: Browser;
/** In the project, so that the server finds the package by its name. */
let folder: string;
let server: ChildProcess | undefined;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(resolve(".tmp-tutorial-page-"));
  const blocks = recipe("10. A page");
  expect(blocks.length).toBe(4);
  for (const [i, name] of ["index.html", "main.js", "worker.js", "server.js"].entries()) {
    writeFileSync(join(folder, name), blocks[i] as string);
  }
});
afterAll(async () => {
  server?.kill();
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** What the page at an address says, and whether its threads may share memory. */
function pageAt(url: string) {
  return onPage(browser, url, async (page) => {
    await page.waitForFunction("document.querySelector('#out').textContent !== ''");
    return { text: await page.textContent("#out"), isIsolated: await page.evaluate(() => crossOriginIsolated) };
  });
}

it("calls a worker by name", async () => {
  server = spawn(process.execPath, [join(folder, "server.js")], {
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [address] = await once(server.stdout as NodeJS.ReadableStream, "data");
  expect(await pageAt(String(address).trim())).toEqual({ text: "12 squared is 144", isIsolated: true });
});

it("calls a worker by name without the two headers", async () => {
  cpSync("dist", join(folder, "pamir"), { recursive: true });
  expect(await serve(filesOf(folder), pageAt)).toEqual({ text: "12 squared is 144", isIsolated: false });
});
