// The page that draws while it sends much: all of it arrives, in each way, and the engine thread goes with its job.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildDemo } from "../../scripts/demo.mjs";
import { filesOf, ISOLATION, openBrowser, serve } from "./support.js";

/** Where a machine that keeps pictures wants them. */
const PICTURES = process.env.PAMIR_PICTURES;

let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-frames-"));
  await buildDemo(folder);
  if (PICTURES !== undefined) mkdirSync(PICTURES, { recursive: true });
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Visit {
  readonly page: Page;
  /** Workers that the page has made, in this order. */
  readonly made: readonly string[];
  readonly console: readonly string[];
  readonly errors: readonly string[];
}

function visit(
  headers: Record<string, string>,
  body: (given: Visit) => Promise<void>,
  query = "mebibytes=8",
): Promise<void> {
  return serve(filesOf(folder, headers), async (url) => {
    const page = await browser.newPage();
    const made: string[] = [];
    const console: string[] = [];
    const errors: string[] = [];
    page.on("worker", (worker) =>
      made.push(
        worker
          .url()
          .replace(url, "")
          .replace(/^blob:.*/, "blob:"),
      ),
    );
    page.on("console", (message) => console.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => errors.push(String(error)));
    try {
      await page.goto(`${url}frames.html?${query}`);
      await body({ page, made, console, errors });
    } finally {
      await page.close();
    }
  });
}

/** Sends in each way; what the page says of each. */
async function sendAll(page: Page): Promise<unknown[]> {
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/^(Done|It ended early)/).waitFor();
  expect(await page.getByRole("status").textContent()).toBe("Done: 8 MiB in each way.");
  const { mebibytes, results } = JSON.parse((await page.locator("#json").textContent()) ?? "");
  expect(mebibytes).toBe(8);
  return results;
}

/** What is to come of each way. */
const ways = (engine: string) => [
  { by: "engine inline", engine: "inline", right: true },
  { by: "engine thread", engine, right: true },
  { by: "postMessage (clone)", engine: "", right: true },
];

it("all of it arrives in each way; the engine thread is there with its job, and goes with it", () =>
  visit(ISOLATION, async ({ page, made, console, errors }) => {
    expect(await sendAll(page)).toMatchObject(ways("thread"));
    expect(made.toSorted()).toEqual(["blob:", "frames-task.js", "frames-task.js", "frames-worker.js"]);
    await expect.poll(() => page.workers().length).toBe(0);
    // Again: nothing of the first time is in the way.
    expect(await sendAll(page)).toMatchObject(ways("thread"));
    expect(made.filter((url) => url === "blob:")).toHaveLength(2);
    await expect.poll(() => page.workers().length).toBe(0);
    expect([console.filter((line) => !line.startsWith("info: pamir")), errors]).toEqual([[], []]);
  }));

it("shows its figures on a screen of 390 pixels, without scrolling sideways", () =>
  visit(ISOLATION, async ({ page }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await sendAll(page);
    const rows = await page
      .locator("tr")
      .evaluateAll((all) =>
        all.map(({ children }) =>
          [...children].map((cell) => ({ text: cell.textContent, right: cell.getBoundingClientRect().right })),
        ),
      );
    expect(rows.map((cells) => cells.length)).toEqual([4, 4, 4, 4]);
    expect(rows.flat().filter(({ text, right }) => text === "" || right > 390)).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, "frames-390.png"), fullPage: true });
  }));

it("each column of times says its unit and that less is better, and marks the least", () =>
  visit(ISOLATION, async ({ page }) => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await sendAll(page);
    const heads = await page.locator("thead th").allInnerTexts();
    expect(heads.slice(1, 3).filter((text) => !/\bms, less is better$/.test(text))).toEqual([]);
    const cells = await page.locator("tbody td").allInnerTexts();
    const columns = [0, 1].map((column) => cells.filter((_, at) => at % 3 === column));
    for (const column of columns) {
      const times = column.map((text) => Number.parseFloat(text));
      expect(column[times.indexOf(Math.min(...times))]).toMatch(/^[\d.]+\s+the least$/);
      for (const text of column) expect(text).toMatch(/^[\d.]+\s+(the least|[\d.,]+ times the least)$/);
    }
    await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
    expect(await page.evaluate("axe.run().then(({ violations }) => violations.map(({ id }) => id))")).toEqual([]);
    if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, "frames-1440.png"), fullPage: true });
  }));

it("P11: where a policy forbids workers from blob:, all of it arrives too; it says why there is no engine thread", () =>
  visit({ ...ISOLATION, "Content-Security-Policy": "worker-src 'self'" }, async ({ page, console, errors }) => {
    expect(await sendAll(page)).toMatchObject(ways("ended"));
    const warnings = console.filter((line) => line.startsWith("warning: pamir"));
    expect(warnings).toEqual([expect.stringMatching(/there is no engine thread: .*Content-Security-Policy.*blob:/)]);
    await page.getByText("there is none here").waitFor();
    await expect.poll(() => page.workers().length).toBe(0);
    expect(errors).toEqual([]);
  }));

it("not isolated, it says why there is nothing to see", () =>
  visit(
    {},
    async ({ page }) => {
      await page.getByText(/Threads share no memory here.*not cross-origin isolated/).waitFor();
      expect(await page.getByRole("button", { name: "Send" }).isDisabled()).toBe(true);
    },
    "not-isolated",
  ));
