// The wave tank behind other tabs: hidden, frozen and back, and beside another tab of the same page.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sequential } from "../../demo/tank/water.js";
import { buildDemo } from "../../scripts/demo.mjs";
import { filesOf, ISOLATION, openBrowser, serve } from "./support.js";

const PATIENCE = { timeout: 60_000 };
const SIZE = 64;

let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-hidden-"));
  await buildDemo(folder);
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens tabs of the page in one window; nothing may be wrong on their consoles. */
function visit(body: (open: () => Promise<Page>, context: BrowserContext) => Promise<void>): Promise<void> {
  return serve(filesOf(folder, ISOLATION), async (url) => {
    const context = await browser.newContext();
    const wrong: string[] = [];
    const open = async (): Promise<Page> => {
      const page = await context.newPage();
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) wrong.push(message.text());
      });
      page.on("pageerror", (error) => wrong.push(String(error)));
      await page.goto(`${url}?grid=${SIZE}&workers=2&rate=1000`);
      await goesTo(page, 10);
      return page;
    };
    try {
      await body(open, context);
      expect(wrong).toEqual([]);
    } finally {
      await context.close();
    }
  });
}

/** The step of the water itself: a page that is not drawn shows none. */
const stepOf = (page: Page) => page.evaluate<number>("tank.tank?.step ?? 0");
const goesTo = (page: Page, step: number) => expect.poll(() => stepOf(page), PATIENCE).toBeGreaterThanOrEqual(step);
const goesOn = async (page: Page) => goesTo(page, (await stepOf(page)) + 5);

/** Brings all rows to one step: its numbers are those of the sequential program. */
async function isRight(page: Page): Promise<void> {
  const step = await page.evaluate<number>("tank.still()");
  expect(step).toBeGreaterThan(0);
  expect(Float32Array.from(await page.evaluate<number[]>("Array.from(tank.water())"))).toEqual(sequential(SIZE, step));
}

it("frozen and back, it goes on, and its numbers are right", () =>
  visit(async (open, context) => {
    const page = await open();
    const session = await context.newCDPSession(page);
    for (let times = 0; times < 3; times++) {
      await session.send("Page.setWebLifecycleState", { state: "frozen" });
      await new Promise((resolve) => setTimeout(resolve, 300));
      await session.send("Page.setWebLifecycleState", { state: "active" });
      await goesOn(page);
    }
    // A worker that is killed while the page is frozen is heard of behind it.
    const frozen = page.evaluate("tank.tank.kill(0)");
    await session.send("Page.setWebLifecycleState", { state: "frozen" });
    await session.send("Page.setWebLifecycleState", { state: "active" });
    await frozen;
    await page.getByText(/^Worker 1 is gone/).waitFor(PATIENCE);
    await page.getByRole("button", { name: "Start worker 1 again" }).click();
    await expect.poll(() => page.getByRole("button", { name: /^Kill worker/ }).count(), PATIENCE).toBe(2);
    await goesOn(page);
    await isRight(page);
  }));

it("two tabs of the page run their tanks beside each other", () =>
  visit(async (open) => {
    const [one, other] = [await open(), await open()];
    await Promise.all([goesOn(one), goesOn(other)]);
    await one.bringToFront();
    await Promise.all([goesOn(one), goesOn(other)]);
    await one.getByRole("button", { name: "Kill worker 2" }).click();
    await one.getByText(/^Worker 2 is gone/).waitFor(PATIENCE);
    await goesOn(other);
    await Promise.all([isRight(one), isRight(other)]);
    await one.close();
    await other.bringToFront();
    await other.getByRole("button", { name: "Run" }).click();
    await goesOn(other);
    await isRight(other);
  }));
