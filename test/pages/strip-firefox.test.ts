// The space-time strip in Firefox: live, held, gone through by keys, and an allreduce step by step.
import type { Browser, Page } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isFirefoxSkipped, openFirefox } from "./firefox.js";
import { buildStrip, HAS_LANES, ROUNDS } from "./strip-folder.js";
import { filesOf, ISOLATION, serve } from "./support.js";

const PATIENCE = { timeout: 60_000 };

describe.skipIf(isFirefoxSkipped())("Firefox", () => {
  let browser: Browser;
  let built: Awaited<ReturnType<typeof buildStrip>>;
  beforeAll(async () => {
    built = await buildStrip();
    browser = await openFirefox();
  });
  afterAll(async () => {
    await browser?.close();
    built?.remove();
  });

  /** The page; no script of it may throw. */
  const visit = (body: (page: Page) => Promise<void>): Promise<void> =>
    serve(filesOf(built.folder, ISOLATION), async (url) => {
      const page = await browser.newPage();
      const wrong: string[] = [];
      page.on("pageerror", (error) => wrong.push(String(error)));
      await page.goto(url);
      await page.waitForFunction("globalThis.strip.model !== undefined");
      await body(page);
      expect(wrong).toEqual([]);
      await page.close();
    });

  const press = async (page: Page, text: string): Promise<void> => {
    await page.evaluate(
      `[...document.querySelectorAll("button")].find((each) => [each.textContent, each.title].includes(${JSON.stringify(text)})).click()`,
    );
  };

  it("live lanes, then held: zoomed, scrubbed, and an arrow by keys has its times", () =>
    visit(async (page) => {
      await page.evaluate(`start(${ROUNDS})`);
      await page.waitForFunction(HAS_LANES, PATIENCE);
      await press(page, "Hold");
      await page.waitForFunction("!strip.isLive && strip.panel.note.textContent === ''", PATIENCE);
      await press(page, "Show all");
      const whole = (await page.evaluate("strip.range.span")) as number;
      await press(page, "Zoom in");
      expect(await page.evaluate("strip.range.span")).toBeCloseTo(whole / 2, 3);
      await page.evaluate("strip.range.show(strip.range.to - 30_000, strip.range.to)");
      await page.focus(".strip-picture");
      const from = (await page.evaluate("strip.range.from")) as number;
      await page.keyboard.press("ArrowLeft");
      expect(await page.evaluate("strip.range.from")).toBeLessThan(from);
      await page.keyboard.press("n");
      await page.waitForFunction("document.querySelectorAll('.strip-chosen dd').length === 6", PATIENCE);
      await press(page, "Live");
      expect(await page.evaluate("strip.isLive")).toBe(true);
    }));

  it("steps through an allreduce as a tree", () =>
    visit(async (page) => {
      await press(page, "Step through an allreduce");
      await page.waitForFunction("strip.tour !== undefined", PATIENCE);
      expect(await page.evaluate("[strip.tour.sums, strip.tour.sum, strip.tour.rounds.length]")).toEqual([
        Array(8).fill(36),
        36,
        6,
      ]);
      await page.focus(".strip-picture");
      for (let round = 1; round <= 6; round++) await page.keyboard.press("n");
      expect(await page.evaluate("document.querySelector('.strip-tour li:last-child').textContent")).toBe(
        "Now each task has 36.",
      );
    }));
});
