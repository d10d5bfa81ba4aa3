// Programs in C on the demo's page in Firefox: one runs, one is stopped, one is changed and compiled.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildDemo } from "../../scripts/demo.mjs";
import { isFirefoxSkipped, openFirefox } from "./firefox.js";
import { filesOf, ISOLATION, serve } from "./support.js";

const HAS_CLANG = process.env.PAMIR_REQUIRE_ALL === "1" || existsSync("node_modules/@yowasp/clang");
const PATIENCE = { timeout: 100_000 };

describe.skipIf(isFirefoxSkipped())("Firefox", () => {
  let browser: Browser;
  let folder: string;

  beforeAll(async () => {
    browser = await openFirefox();
    folder = mkdtempSync(join(tmpdir(), "pamir-c-page-"));
    await buildDemo(folder);
  });

  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function visit(body: (page: Page) => Promise<void>): Promise<void> {
    await serve(filesOf(folder, ISOLATION), async (url) => {
      const page = await browser.newPage();
      const wrong: string[] = [];
      page.on("console", (message) => {
        if (["error", "warn"].includes(message.type())) wrong.push(message.text());
      });
      page.on("pageerror", (error) => wrong.push(String(error)));
      await page.goto(`${url}?grid=64&workers=1&stop=1`);
      await page.evaluate("document.getElementById('c-title').scrollIntoView()");
      await page.waitForSelector(".c-run", PATIENCE);
      await body(page);
      expect(wrong).toEqual([]);
      await page.close();
    });
  }

  const status = (page: Page) => page.evaluate("document.querySelector('#c [role=status]').textContent");
  const lines = async (page: Page) => {
    await page.waitForFunction("!document.querySelector('.c-run').disabled", PATIENCE);
    const text = (await page.evaluate("document.querySelector('.c-output').innerText")) as string;
    return text.split("\n").filter((line) => line !== "");
  };
  const choose = async (page: Page, name: string, args = "") => {
    await page.select("#c select", name);
    const text = JSON.stringify(readFileSync(join(folder, "c", `${name}.c`), "utf8"));
    await page.waitForFunction(`document.querySelector('#c textarea').value === ${text}`, PATIENCE);
    await page.evaluate(`(() => {
      document.querySelector('#c input[type=text]').value = ${JSON.stringify(args)};
      document.querySelector('#c input[type=number]').value = "2";
    })()`);
  };

  it("a program runs, one that loops for ever is stopped, and one runs again", () =>
    visit(async (page) => {
      await choose(page, "hello");
      const hello = ["[0] rank 0 of 2, sum 1", "[1] rank 1 of 2, sum 1"];
      await page.click(".c-run");
      expect((await lines(page)).sort()).toEqual(hello);
      expect(await status(page)).toMatch(/^hello\.c: 2 ranks ended with code 0 after/);
      await choose(page, "faults", "loop");
      await page.click(".c-run");
      await page.waitForFunction("document.querySelector('.c-output').textContent.includes('loop')", PATIENCE);
      await page.keyboard.press("Enter");
      await lines(page);
      expect(await status(page)).toMatch(/^faults\.c was stopped after/);
      await choose(page, "hello");
      await page.click(".c-run");
      expect((await lines(page)).sort()).toEqual(hello);
    }));

  it.skipIf(!HAS_CLANG)("a program that is changed is compiled in the page", () =>
    visit(async (page) => {
      await choose(page, "hello");
      await page.evaluate(`(() => {
        const editor = document.querySelector('#c textarea');
        editor.value = editor.value.replace("rank %d", "I am %d");
        editor.dispatchEvent(new Event("input"));
      })()`);
      await page.click(".c-run");
      expect((await lines(page)).sort(), (await status(page)) as string).toEqual([
        "[0] I am 0 of 2, sum 1",
        "[1] I am 1 of 2, sum 1",
      ]);
    }),
  );
});
