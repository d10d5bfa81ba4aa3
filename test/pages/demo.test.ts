// The card of the demo as a visitor has it: by pointer and by keyboard, small and large, a worker killed, without isolation.
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
  folder = mkdtempSync(join(tmpdir(), "pamir-demo-"));
  await buildDemo(folder);
  if (PICTURES !== undefined) mkdirSync(PICTURES, { recursive: true });
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface View {
  readonly width?: number;
  readonly colorScheme?: "light" | "dark";
  readonly headers?: Record<string, string>;
  readonly query?: string;
}

/** The demo in a window; nothing may be wrong on its console. */
async function visit(view: View, body: (page: Page) => Promise<void>): Promise<void> {
  const { width = 1000, colorScheme = "light", headers = ISOLATION, query = "milliseconds=300" } = view;
  await serve(filesOf(folder, headers), async (url) => {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    const wrong: string[] = [];
    try {
      const page = await context.newPage();
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) wrong.push(message.text());
      });
      page.on("pageerror", (error) => wrong.push(String(error)));
      // A tank that rests: these tests are about the race.
      await page.goto(`${url}?grid=64&workers=1&stop=1&${query}`);
      await body(page);
      expect(wrong).toEqual([]);
    } finally {
      await context.close();
    }
  });
}

/** Waits until the race is over, and returns its result. */
async function resultOf(page: Page) {
  await page.getByRole("button", { name: "Race again" }).waitFor({ timeout: 120_000 });
  expect(await page.locator("#race-status").textContent()).toMatch(/^Done: /);
  return JSON.parse((await page.locator("#json").textContent()) ?? "") as {
    mode: string;
    results: { by: string; p50_ns: number; p999_ns: number; messages_per_s: number }[];
    everyday: { what: string; unit: string; pamir: number; usual: number; by: string }[];
    page_ms_a_frame: { frames: number };
  };
}

/** Each figure is there, beside that of the usual way. */
function expectEveryday(rows: Awaited<ReturnType<typeof resultOf>>["everyday"]): void {
  expect(rows.map(({ what, unit, by }) => `${what}: ${unit}, ${by}`)).toEqual([
    "A call by name, with an object: µs, Comlink",
    "Blocks of 1 MiB, copied: MB/s, postMessage",
    "A barrier of two workers: µs, postMessage",
  ]);
  for (const { pamir, usual } of rows) expect(Math.min(pamir, usual)).toBeGreaterThan(0);
}

it.each([
  { width: 390, colorScheme: "light" },
  { width: 1440, colorScheme: "dark" },
] as const)("a race, by pointer, at %o", (view) =>
  visit(view, async (page) => {
    await page.getByRole("button", { name: "Start the race" }).click();
    const { mode, results, everyday, page_ms_a_frame } = await resultOf(page);
    expect(mode).toBe("shared");
    expectEveryday(everyday);
    expect(results.map(({ by }) => by)).toEqual(["pamir, WebAssembly", "pamir, TypeScript twin", "postMessage"]);
    for (const { p50_ns, p999_ns, messages_per_s } of results) {
      expect(p50_ns).toBeGreaterThan(10);
      expect(p999_ns).toBeGreaterThanOrEqual(p50_ns);
      expect(messages_per_s).toBeGreaterThan(0);
    }
    expect(page_ms_a_frame.frames).toBeGreaterThan(0);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(view.width);
    const rights = await page
      .locator("tr > *")
      .evaluateAll((all) => all.map((cell) => cell.getBoundingClientRect().right));
    expect(rights).toHaveLength(24 + 16);
    expect(Math.max(...rights)).toBeLessThanOrEqual(view.width);
    expect(await page.locator(".wasm").getByRole("img").getAttribute("aria-label")).toMatch(
      /WebAssembly: median .*s, p99/,
    );
    await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
    expect(await page.evaluate("axe.run().then(({ violations }) => violations.map(({ id }) => id))")).toEqual([]);
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as a picture" }).click();
    const picture = await saved;
    expect(picture.suggestedFilename()).toBe("pamir-card.png");
    expect(
      readFileSync(await picture.path())
        .subarray(1, 4)
        .toString(),
    ).toBe("PNG");
    if (PICTURES !== undefined) {
      await picture.saveAs(join(PICTURES, "card.png"));
      await page.screenshot({ path: join(PICTURES, `demo-${view.width}-${view.colorScheme}.png`), fullPage: true });
    }
  }),
);

it("says what pamir is, how to install it, and where its source is", () =>
  visit({}, async (page) => {
    const text = (await page.locator("main").innerText()).replace(/\s+/g, " ");
    for (const each of [
      "between the threads of a JavaScript program",
      "npm install pamir",
      "until that is released, a package is built from a clone",
      "The source comes with it, in node_modules/pamir",
    ]) {
      expect(text).toContain(each);
    }
  }));

it("by keyboard, resized while it runs", () =>
  // So long that it still runs when it is seen to run.
  visit({ query: "milliseconds=1500" }, async (page) => {
    await page.getByRole("button", { name: "Start the race" }).focus();
    await Promise.all([page.getByText("Running: pamir, WebAssembly.").waitFor(), page.keyboard.press("Enter")]);
    await page.setViewportSize({ width: 400, height: 700 });
    await resultOf(page);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(400);
  }));

it.each(["pamir, WebAssembly", "postMessage"])("a worker of %s is killed: it says so, and begins again", (name) =>
  visit({ query: "milliseconds=2500" }, async (page) => {
    await page.getByRole("button", { name: "Start the race" }).click();
    // It has measured something: so its workers are there, and they go on for seconds.
    await page.getByRole("img", { name: `${name}: median` }).waitFor({ state: "attached", timeout: 60_000 });
    await page.getByRole("button", { name: "Kill a worker" }).click();
    await page.getByText(`A worker of ${name} was killed: it begins again.`).waitFor();
    await resultOf(page);
  }),
);

it("without the headers: the service worker adds them", () =>
  visit({ headers: {} }, async (page) => {
    await page.waitForFunction("crossOriginIsolated");
    // The page is another one now: its button does something from when its script has drawn.
    await page.locator(".histogram").first().waitFor({ state: "attached" });
    await page.getByRole("button", { name: "Start the race" }).click();
    expect((await resultOf(page)).mode).toBe("shared");
  }));

it("not isolated at all: it says what is missing, and runs by messages", () =>
  visit({ headers: {}, query: "milliseconds=300&not-isolated" }, async (page) => {
    await page.getByText(/not cross-origin isolated.*Cross-Origin-Opener-Policy/).waitFor();
    await page.getByRole("button", { name: "Start the race" }).click();
    const { mode, everyday } = await resultOf(page);
    expect(mode).toBe("messages");
    expectEveryday(everyday);
  }));
