// The wave tank of the demo as a visitor has it: it runs without a click, is painted on, loses a worker and gets it back; its
// numbers are those of the sequential program, by pamir with and without shared memory, and by postMessage.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sequential } from "../../demo/tank/water.js";
import { buildDemo } from "../../scripts/demo.mjs";
import { filesOf, ISOLATION, openBrowser, serve } from "./support.js";

/** Where a machine that keeps pictures wants them. */
const PICTURES = process.env.PAMIR_PICTURES;

let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-tank-"));
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
  readonly reducedMotion?: "reduce" | "no-preference";
  readonly hasTouch?: boolean;
  readonly headers?: Record<string, string>;
  readonly query?: string;
  /** Runs before any script of the page. */
  readonly first?: string;
}

/** The page in a window; nothing may be wrong on its console. */
async function visit(view: View, body: (page: Page) => Promise<void>): Promise<void> {
  const { headers = ISOLATION, query = "", first, width = 1000, ...options } = view;
  await serve(filesOf(folder, headers), async (url) => {
    const context = await browser.newContext({ viewport: { width, height: 900 }, ...options });
    const wrong: string[] = [];
    try {
      if (first !== undefined) await context.addInitScript(first);
      const page = await context.newPage();
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) wrong.push(message.text());
      });
      page.on("pageerror", (error) => wrong.push(String(error)));
      await page.goto(`${url}?${query}`);
      await body(page);
      expect(wrong).toEqual([]);
    } finally {
      await context.close();
    }
  });
}

const PATIENCE = { timeout: 60_000 };

const stepOf = async (page: Page): Promise<number> =>
  Number(((await page.locator("#step").textContent()) ?? "").replaceAll(",", ""));

/** Waits until the tank has gone so far. */
const reaches = (page: Page, step: number) => expect.poll(() => stepOf(page), PATIENCE).toBeGreaterThanOrEqual(step);

/** Waits until it goes on. */
async function goesOn(page: Page): Promise<void> {
  await reaches(page, (await stepOf(page)) + 1);
}

const waterOf = async (page: Page): Promise<Float32Array> =>
  Float32Array.from(await page.evaluate<number[]>("Array.from(tank.water())"));

/** Rows that differ from those of the sequential program. */
async function wrongRows(page: Page, size: number, step: number): Promise<number[]> {
  const water = await waterOf(page);
  const wanted = sequential(size, step);
  const isWrong = (_: unknown, row: number) =>
    wanted.subarray(row * size, (row + 1) * size).some((height, x) => height !== water[row * size + x]);
  return Array.from({ length: size }, (_, row) => row).filter(isWrong);
}

/** Brings all rows to one step; the numbers there are those of the sequential program. */
async function isRight(page: Page, size: number): Promise<void> {
  const step = await page.evaluate<number>("tank.still()");
  expect(step).toBeGreaterThan(0);
  expect(await wrongRows(page, size, step)).toEqual([]);
}

/** The height of the water in the middle of the tank, or beside it. */
const heightAt = (page: Page, size: number, x = 0.5, y = 0.5): Promise<number> =>
  page.evaluate<number>(`tank.water()[${Math.round(y * size) * size + Math.round(x * size)}]`);

const workers = (page: Page) => page.getByRole("button", { name: /^Kill worker \d+$/ });

/** The numbers of a run that makes so many steps, from the start of the page. */
async function isRightAt(page: Page, size: number, step: number): Promise<void> {
  await reaches(page, step);
  // By postMessage, the last frame may be on its way.
  await expect.poll(() => wrongRows(page, size, step), PATIENCE).toEqual([]);
}

it("runs without a click, and says how fast", () =>
  visit({ query: "grid=128" }, async (page) => {
    await reaches(page, 10);
    for (const id of ["steps", "messages", "waited", "blocked", "frame"]) {
      await expect.poll(() => page.locator(`#${id}`).textContent(), PATIENCE).toMatch(/^(≤ )?[\d.,]+( ms|K|M| %)?$/);
    }
    await expect.poll(() => page.locator("#hand-off").textContent(), PATIENCE).toMatch(/^(≤ )?[\d.,]+ (ns|µs|ms)$/);
    expect(await page.locator("#hand-off-note").textContent()).toMatch(
      /^(p50, known to [\d.]+ .s|the clock shows no less)$/,
    );
    expect(await page.title()).toBe("pamir: a wave tank on all your cores");
    // Without an address of the pages, a picture would have none either.
    expect(await page.locator("meta[property='og:image']").count()).toBe(0);
  }));

it.each([1, 2, 3, 7])("has the numbers of the sequential program, by %i workers", (count) =>
  visit({ query: `grid=64&stop=700&workers=${count}` }, (page) => isRightAt(page, 64, 700)),
);

it("has them by postMessage, too", () =>
  visit({ query: "grid=64&stop=700&workers=3" }, async (page) => {
    await reaches(page, 700);
    await page.getByLabel("the same by postMessage").check();
    await page.getByText("3 workers run the tank by postMessage").waitFor();
    await isRightAt(page, 64, 700);
  }));

it("not isolated, it says what is missing, and runs by messages, with the same numbers", () =>
  visit({ headers: {}, query: "not-isolated&grid=64&stop=50&workers=2" }, async (page) => {
    await page.getByText(/not cross-origin isolated.*Cross-Origin-Opener-Policy.*the page gets copies/).waitFor();
    await isRightAt(page, 64, 50);
  }));

it("not isolated, a worker is killed: the page says what is lost, and the others go on", () =>
  visit({ headers: {}, query: "not-isolated&grid=64&workers=3" }, async (page) => {
    await expect.poll(() => workers(page).count(), PATIENCE).toBe(3);
    await reaches(page, 2);
    await page.getByRole("button", { name: "Kill worker 2" }).click();
    await page
      .getByText(/^Worker 2 is gone\. Its rows were in its own memory: the water is still again/)
      .waitFor(PATIENCE);
    await page.getByRole("button", { name: "Start worker 2 again" }).click();
    await expect.poll(() => workers(page).count(), PATIENCE).toBe(3);
    await goesOn(page);
  }));

it("without WebAssembly, it says so, and runs by the twin", () =>
  visit(
    { headers: { ...ISOLATION, "Content-Security-Policy": "script-src 'self'" }, query: "grid=64&stop=300&workers=2" },
    async (page) => {
      await page.getByText(/Here pamir is not what it could be: .*WebAssembly/).waitFor();
      await isRightAt(page, 64, 300);
    },
  ));

it("on one core, it says so, and runs one worker", () =>
  visit(
    { first: "Object.defineProperty(navigator, 'hardwareConcurrency', { get: () => 1 })", query: "grid=64" },
    async (page) => {
      await page.getByText("This machine has one core").waitFor();
      await goesOn(page);
      expect(await workers(page).count()).toBe(1);
      await page.getByText("takes two workers").waitFor(PATIENCE);
    },
  ));

it("a worker is killed: the others hear SHUTDOWN, share its rows, and it comes back; the numbers stay right", () =>
  visit({ query: "grid=64&workers=3&rate=1000" }, async (page) => {
    await reaches(page, 20);
    await page.getByRole("button", { name: "Kill worker 2" }).click();
    await page
      .getByText(
        /^Worker 2 is gone\. The others heard SHUTDOWN after [\d.,]+ [nµm]s, shared its rows, and all had made/,
      )
      .waitFor(PATIENCE);
    await expect.poll(() => workers(page).count(), PATIENCE).toBe(2);
    await goesOn(page);
    await page.getByRole("button", { name: "Start worker 2 again" }).click();
    await expect.poll(() => workers(page).count(), PATIENCE).toBe(3);
    await goesOn(page);
    await isRight(page, 64);
  }));

it("a worker is killed while the tank is paused: the page says so, and the others go on once it runs", () =>
  visit({ query: "grid=64&workers=3&rate=1000" }, async (page) => {
    await reaches(page, 20);
    const step = await page.evaluate("tank.still()");
    await page.getByRole("button", { name: "Kill worker 2" }).click();
    await page.getByText("Worker 2 is killed. The tank is paused: the others get its rows").waitFor();
    await expect.poll(() => workers(page).count(), PATIENCE).toBe(2);
    expect(await page.evaluate("tank.still()")).toBe(step);
    await page.getByRole("button", { name: "Run" }).click();
    await page
      .getByText(/^Worker 2 is gone\. The others .*shared its rows, and went on once the tank ran\.$/)
      .waitFor(PATIENCE);
    await goesOn(page);
    await isRight(page, 64);
  }));

it("all workers are killed, by keys: the water stands still, and goes on from there", () =>
  visit({ query: "grid=64&workers=2&rate=1000" }, async (page) => {
    await reaches(page, 20);
    for (const worker of [1, 2]) {
      await page.getByRole("button", { name: `Kill worker ${worker}` }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: `Start worker ${worker} again` }).waitFor(PATIENCE);
    }
    expect(await workers(page).count()).toBe(0);
    // The keys are where they were: at the worker that was killed last.
    await page.keyboard.press("Enter");
    await expect.poll(() => workers(page).count(), PATIENCE).toBe(1);
    await goesOn(page);
    await isRight(page, 64);
  }));

it("a worker of postMessage is killed: the page says what is lost, and begins again", () =>
  visit({ query: "grid=64&workers=3" }, async (page) => {
    await page.getByLabel("the same by postMessage").check();
    await page.getByText("3 workers run the tank by postMessage").waitFor();
    await goesOn(page);
    await page.getByRole("button", { name: "Kill worker 2" }).click();
    await page.getByText(/its rows are lost.*begun again with still water/).waitFor();
    expect(await workers(page).count()).toBe(2);
    await expect.poll(() => stepOf(page), PATIENCE).toBeGreaterThan(0);
    await page.getByLabel("the same by postMessage").uncheck();
    await page.getByText("3 workers run the tank by pamir").waitFor();
    await goesOn(page);
  }));

it("another number of workers; a number that is none, and 200, are answered in words", () =>
  visit({ query: "grid=64&workers=2&rate=1000" }, async (page) => {
    await reaches(page, 5);
    const field = page.getByLabel("Workers", { exact: true });
    for (const [typed, count, answer] of [
      ["5", 5, "The rows are shared among 5 workers now."],
      ["200", 16, "200 workers were asked for: this page starts 1 to 16, and so 16."],
      ["0", 1, "0 workers were asked for: this page starts 1 to 16, and so 1."],
      ["", 1, "That is no number of workers: this page starts 1 to 16, and so 1."],
      ["3", 3, "The rows are shared among 3 workers now."],
    ] as const) {
      await field.fill(typed);
      await field.press("Tab");
      await page.getByText(answer).waitFor();
      expect(await field.inputValue()).toBe(String(count));
      await expect.poll(() => workers(page).count(), PATIENCE).toBe(count);
      await goesOn(page);
    }
    await isRight(page, 64);
  }));

it("more workers are started than a job has tasks: it goes on in another job", () =>
  visit({ query: "grid=64&workers=1&rate=1000" }, async (page) => {
    await reaches(page, 5);
    const field = page.getByLabel("Workers", { exact: true });
    for (const count of [16, 1, 16, 1, 16, 1, 16, 1, 16]) {
      await field.fill(String(count));
      await field.press("Tab");
      await expect.poll(() => workers(page).count(), PATIENCE).toBe(count);
    }
    await goesOn(page);
    await isRight(page, 64);
  }));

it("reduced motion: it starts paused; pointer, finger and keys paint on still water", () =>
  visit({ reducedMotion: "reduce", hasTouch: true, query: "grid=64&workers=2" }, async (page) => {
    await expect.poll(() => workers(page).count(), PATIENCE).toBe(2);
    const water = page.getByRole("application");
    const box = (await water.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    expect([await stepOf(page), await heightAt(page, 64)]).toEqual([0, 0]);
    await page.mouse.click(box.x + box.width / 4, box.y + box.height / 4);
    await expect.poll(() => heightAt(page, 64, 0.25, 0.25), PATIENCE).toBeGreaterThan(0.1);
    await page.touchscreen.tap(box.x + (3 * box.width) / 4, box.y + box.height / 4);
    await expect.poll(() => heightAt(page, 64, 0.75, 0.25), PATIENCE).toBeGreaterThan(0.1);
    await water.focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowLeft", "Space"]) await page.keyboard.press(key);
    const [x, y] = [0.75 - 1 / 24, 0.25 + 2 / 24];
    await expect.poll(() => heightAt(page, 64, x, y), PATIENCE).toBeGreaterThan(0.5);
    expect(await stepOf(page)).toBe(0);
    await page.getByRole("button", { name: "Run" }).click();
    await goesOn(page);
    await page.getByRole("button", { name: "Pause" }).click();
    const before = await page.evaluate("tank.still()");
    expect(await page.evaluate("tank.still()")).toBe(before);
  }));

it.each([
  { width: 390, colorScheme: "light" },
  { width: 390, colorScheme: "dark" },
  { width: 768, colorScheme: "light" },
  { width: 1440, colorScheme: "light" },
  { width: 1440, colorScheme: "dark" },
] as const)("is whole at %o, and axe finds nothing", (view) =>
  visit({ ...view, query: "workers=4&grid=256" }, async (page) => {
    await reaches(page, 20);
    await expect.poll(() => page.locator("#steps").textContent(), PATIENCE).not.toBe("–");
    await expect.poll(() => workers(page).count(), PATIENCE).toBe(4);
    await page.getByRole("button", { name: "Kill worker 3" }).click();
    await page.getByText(/^Worker 3 is gone/).waitFor(PATIENCE);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(view.width);
    const canvas = (await page.getByRole("application").boundingBox()) ?? { width: 0, height: 1 };
    expect(canvas.width / canvas.height).toBeCloseTo(1, 1);
    // Something is on it.
    const shades = await page.evaluate<number>(
      "new Set(new Uint32Array(document.getElementById('water').getContext('2d').getImageData(0, 0, 256, 256).data.buffer)).size",
    );
    expect(shades).toBeGreaterThan(10);
    await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
      "axe.run()",
    );
    expect(violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])).toEqual([]);
    if (PICTURES !== undefined) {
      await page.screenshot({ path: join(PICTURES, `tank-${view.width}-${view.colorScheme}.png`), fullPage: true });
    }
  }),
);

it("the strip below shows the workers' puts and messages, live and held", () =>
  visit({ query: "grid=64&workers=2" }, async (page) => {
    await goesOn(page);
    // It reads the trace while it is seen.
    const strip = page.locator("#strip canvas");
    await strip.scrollIntoViewIfNeeded();
    await expect.poll(() => strip.getAttribute("aria-label"), PATIENCE).toMatch(/task/);
    await page.getByRole("button", { name: "Hold" }).click();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await goesOn(page);
    await page.getByRole("button", { name: "Live" }).click();
    await page.getByRole("button", { name: "Hold" }).waitFor();
  }));

it("resized while it runs, hidden and back", () =>
  visit({ query: "grid=64&workers=2" }, async (page) => {
    await reaches(page, 5);
    await page.setViewportSize({ width: 400, height: 700 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(400);
    await goesOn(page);
    const hide = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, "hidden", { configurable: true, get: () => ${isHidden} });
        document.dispatchEvent(new Event("visibilitychange"))`);
    await hide(true);
    const step = await page.evaluate<number>("tank.tank.level().then(() => tank.tank.step)");
    expect(await page.evaluate("tank.tank.level().then(() => tank.tank.step)")).toBe(step);
    await hide(false);
    await goesOn(page);
  }));
