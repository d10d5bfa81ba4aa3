// The card of the demo where workers fail: their scripts do not come, or throw. It says what was not measured, and goes on.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page, Route } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildDemo } from "../../scripts/demo.mjs";
import { filesOf, ISOLATION, openBrowser, serve } from "./support.js";

let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-card-"));
  await buildDemo(folder, { hasClang: false });
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

const NOT_THERE = (route: Route) => route.fulfill({ status: 404, headers: ISOLATION });
const BROKEN = (route: Route) => route.fulfill({ status: 500, headers: ISOLATION });
const script = (body: string) => (route: Route) =>
  route.fulfill({ status: 200, contentType: "text/javascript", headers: ISOLATION, body });
const NO_SYNTAX = script("let = = ;");
const THROWS = script("throw new Error('a fault of its own')");

type Faults = Record<string, (route: Route) => Promise<void>>;

/** A race where these scripts fail. @returns what the page says, and the card as JSON */
async function raceWith(page: Page, faults: Faults) {
  for (const [name, fault] of Object.entries(faults)) await page.route(`**/${name}.js`, fault);
  await page.locator("#run").click();
  const isOver = `document.getElementById("run").textContent === "Race again" && !document.getElementById("run").disabled`;
  await page.waitForFunction(isOver, undefined, { timeout: 120_000 });
  await page.unrouteAll();
  const said = (await page.locator("#race-status").textContent()) ?? "";
  const card = said.startsWith("The race ended early") ? undefined : await page.locator("#json").textContent();
  return {
    said,
    ...(JSON.parse(card ?? "{}") as {
      results: { by: string; failed?: string; p50_ns?: number }[];
      everyday: { pamir: number | null; usual: number | null }[];
    }),
  };
}

it("says which of them was not measured, and why, and has the others' figures", () =>
  serve(filesOf(folder, ISOLATION), async (url) => {
    const context = await browser.newContext();
    const wrong: string[] = [];
    try {
      const page = await context.newPage();
      page.on("pageerror", (error) => wrong.push(String(error)));
      await page.goto(`${url}?grid=64&workers=1&stop=1&milliseconds=30`);

      const own = await raceWith(page, { task: NOT_THERE, "call-comlink": NO_SYNTAX });
      expect(own.said).toMatch(
        /^Done, but for a part\. Not measured: pamir, WebAssembly \(.*task\.js.*\); pamir, TypeScript twin \(.*\); calls by Comlink \(.*\)\.$/,
      );
      expect(own.results.map(({ by, failed }) => [by, failed !== undefined])).toEqual([
        ["pamir, WebAssembly", true],
        ["pamir, TypeScript twin", true],
        ["postMessage", false],
      ]);
      expect(own.results.map(({ p50_ns }) => p50_ns ?? 0)).toEqual([0, 0, expect.any(Number)]);
      expect(own.everyday[0]).toMatchObject({ pamir: expect.any(Number), usual: null });
      expect(await page.locator("#everyday td").allTextContents()).toContain("– by Comlink");
      expect(await page.locator(".histogram.wasm h3").textContent()).toMatch(/ failed$/);
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "Save as a picture" }).click();
      expect(
        readFileSync(await (await saved).path())
          .subarray(1, 4)
          .toString(),
      ).toBe("PNG");

      const usual = await raceWith(page, { "post-message": BROKEN, "blocks-task": THROWS, "call-pamir": NOT_THERE });
      expect(usual.said).toMatch(
        /^Done, but for a part\. Not measured: postMessage \(a worker of postMessage could not be loaded\); calls by pamir \(.*call-pamir\.js.*\); blocks and barriers by pamir \(.*a fault of its own.*\)\.$/,
      );
      expect(usual.everyday.map(({ pamir }) => pamir)).toEqual([null, null, null]);
      for (const { usual: figure } of usual.everyday) expect(figure).toBeGreaterThan(0);

      const none = await raceWith(page, { task: THROWS, "post-message": NOT_THERE });
      expect(none.said).toMatch(/^The race ended early: .*a fault of its own/);
      expect(await page.evaluate("tank.resting")).toBe(0);
      expect(wrong).toEqual([]);
    } finally {
      await context.close();
    }
  }));
