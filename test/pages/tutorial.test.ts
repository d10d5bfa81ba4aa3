// docs/tutorial.md, step 10: the page as it stands there, over the package as it is built.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-tutorial-"));
  const [html, main, worker] = recipe("10. A page") as [string, string, string];
  mkdirSync(join(folder, "app"));
  writeFileSync(join(folder, "app", "index.html"), html);
  writeFileSync(join(folder, "app", "main.js"), main);
  writeFileSync(join(folder, "app", "worker.js"), worker);
  cpSync("dist", join(folder, "pamir"), { recursive: true });
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

it.each([true, false])("calls a worker by name, isolated: %s", async (isIsolated) => {
  const files = filesOf(folder);
  const text = await serve(
    (request, response) => {
      if (isIsolated) {
        response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
        response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
      }
      files(request, response);
    },
    (url) =>
      onPage(browser, `${url}app/index.html`, async (page) => {
        await page.waitForFunction("document.querySelector('#out').textContent !== ''", undefined, { timeout: 30_000 });
        expect(await page.evaluate(() => crossOriginIsolated)).toBe(isIsolated);
        return page.textContent("#out");
      }),
  );
  expect(text).toBe("12 squared is 144");
});
