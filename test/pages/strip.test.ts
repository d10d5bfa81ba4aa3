// The space-time strip, on a page of its own: by pointer, wheel, touch and keyboard, live and paused, a task killed, a trace of
// many events, without isolation.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { faultsOfTrace } from "../support/trace-format.js";
import { buildStrip, HAS_LANES, ROUNDS } from "./strip-folder.js";
import { filesOf, ISOLATION, openBrowser, serve } from "./support.js";

/** Where a machine that keeps pictures wants them. */
const PICTURES = process.env.PAMIR_PICTURES;
const PATIENCE = 120_000;

let browser: Browser;
let folder: string;
let remove: (() => void) | undefined;

beforeAll(async () => {
  browser = await openBrowser();
  ({ folder, remove } = await buildStrip());
  if (PICTURES !== undefined) mkdirSync(PICTURES, { recursive: true });
});

afterAll(async () => {
  await browser?.close();
  remove?.();
});

interface View {
  readonly width?: number;
  readonly colorScheme?: "light" | "dark";
  readonly reducedMotion?: "reduce";
  readonly hasTouch?: boolean;
  readonly headers?: Record<string, string>;
}

/** The page in a window; nothing may be wrong on its console. */
async function visit(view: View, body: (page: Page) => Promise<void>): Promise<void> {
  const { headers = ISOLATION, width = 1000, ...options } = view;
  await serve(filesOf(folder, headers), async (url) => {
    const context = await browser.newContext({ viewport: { width, height: 900 }, ...options });
    const wrong: string[] = [];
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(PATIENCE);
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) wrong.push(message.text());
      });
      page.on("pageerror", (error) => wrong.push(String(error)));
      await page.goto(url);
      await page.waitForFunction("globalThis.strip.model !== undefined");
      await body(page);
      expect(wrong).toEqual([]);
    } finally {
      await context.close();
    }
  });
}

const label = (page: Page) => page.locator("canvas").getAttribute("aria-label");
const range = (page: Page) =>
  page.evaluate("({ from: strip.range.from, to: strip.range.to, span: strip.range.span })") as Promise<{
    from: number;
    to: number;
    span: number;
  }>;
const startJob = async (page: Page) => {
  await page.evaluate(`start(${ROUNDS})`);
  await page.waitForFunction(HAS_LANES);
};
const pause = async (page: Page) => {
  await page.getByRole("button", { name: "Hold" }).click();
  await page.waitForFunction("!strip.isLive && strip.panel.note.textContent === ''");
};
/** What axe finds. */
const faults = async (page: Page) => {
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>("axe.run()");
  return violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]);
};
const picture = (page: Page) => page.getByRole("group", { name: "Picture" });

it.each([
  { width: 390, colorScheme: "light" },
  { width: 390, colorScheme: "dark" },
  { width: 768, colorScheme: "light" },
  { width: 768, colorScheme: "dark" },
  { width: 1440, colorScheme: "light" },
  { width: 1440, colorScheme: "dark" },
] as const)("live lanes, then paused: an arrow that is chosen has its times, at %o", (view) =>
  visit(view, async (page) => {
    await startJob(page);
    await expect.poll(() => label(page), { timeout: PATIENCE }).toMatch(/^5 lanes: task 0, task 1, .*sends/);
    await pause(page);
    await page.evaluate("strip.range.show(strip.range.to - 30_000, strip.range.to)");
    await picture(page).focus();
    await page.keyboard.press("n");
    await expect.poll(() => page.locator(".strip-chosen dd").count()).toBe(6);
    const times = await page
      .locator(".strip-chosen dd[data-us]")
      .evaluateAll((all) => all.map((each) => [each.getAttribute("data-key"), Number(each.getAttribute("data-us"))]));
    expect(times.map(([key]) => key)).toEqual(["send", "lane", "handler", "runs"]);
    const { send, handler, lane, runs } = Object.fromEntries(times) as Record<string, number>;
    // Within a step of the clock, and of the event's burst.
    expect(Math.max(0, handler! - send!)).toBeCloseTo(lane!, 3);
    expect(runs).toBeGreaterThan(0);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(view.width);
    expect(await faults(page)).toEqual([]);
    if (PICTURES !== undefined) {
      const name = `strip-${view.width}-${view.colorScheme}.png`;
      await page.screenshot({ path: join(PICTURES, name), fullPage: true });
    }
  }),
);

it("paused, it is scrubbed and zoomed both ways, by buttons, keys, wheel, pointer and slider", () =>
  visit({}, async (page) => {
    await startJob(page);
    await pause(page);
    await page.getByRole("button", { name: "Show all" }).click();
    const whole = await range(page);
    await page.getByRole("button", { name: "Zoom in" }).click();
    const half = await range(page);
    expect(half.span).toBeCloseTo(whole.span / 2, 3);
    await page.getByRole("button", { name: "Earlier" }).click();
    const earlier = await range(page);
    expect(earlier.from).toBeLessThan(half.from);
    await page.getByRole("button", { name: "Later" }).click();
    expect((await range(page)).from).toBeCloseTo(half.from, 3);
    await picture(page).click({ position: { x: 500, y: 5 } });
    for (const [key, factor] of [
      ["+", 0.5],
      ["-", 2],
    ] as const) {
      const { span } = await range(page);
      await page.keyboard.press(key);
      expect((await range(page)).span).toBeCloseTo(span * factor, 3);
    }
    for (const [key, sign] of [
      ["ArrowRight", 1],
      ["Shift+ArrowLeft", -1],
    ] as const) {
      const { from } = await range(page);
      await page.keyboard.press(key);
      expect(Math.sign((await range(page)).from - from)).toBe(sign);
    }
    for (const [delta, sign] of [
      [-300, -1],
      [300, 1],
    ] as const) {
      const { span } = await range(page);
      await page.mouse.wheel(0, delta);
      await expect.poll(async () => Math.sign((await range(page)).span - span)).toBe(sign);
    }
    const box = (await picture(page).boundingBox())!;
    for (const by of [-200, 200]) {
      await page.evaluate("strip.range.show(strip.range.begin + 2e4, strip.range.begin + 4e4)");
      const { from } = await range(page);
      await page.mouse.move(box.x + 400, box.y + 60);
      await page.mouse.down();
      await page.mouse.move(box.x + 400 + by, box.y + 60, { steps: 4 });
      await page.mouse.up();
      // The picture follows the pointer.
      expect(Math.sign((await range(page)).from - from)).toBe(-Math.sign(by));
    }
    await page.getByLabel("Time").fill("0");
    expect((await range(page)).from).toBeCloseTo(whole.from, 3);
    for (let times = 0; times < 60; times++) await page.getByRole("button", { name: "Zoom in" }).click({ delay: 0 });
    expect((await range(page)).span).toBeCloseTo(0.1, 6);
    await page.getByRole("button", { name: "Show all" }).click();
    expect(await range(page)).toEqual(whole);
    await picture(page).focus();
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Hold" }).waitFor();
  }));

it("two fingers zoom, one scrubs", () =>
  visit({ hasTouch: true, width: 390 }, async (page) => {
    await page.evaluate("showSynthetic(3, 1000)");
    const box = (await picture(page).boundingBox())!;
    const touch = await page.context().newCDPSession(page);
    const send = (type: "touchStart" | "touchMove" | "touchEnd", ...xs: number[]) =>
      touch.send("Input.dispatchTouchEvent", {
        type,
        touchPoints: xs.map((x, id) => ({ x: box.x + x, y: box.y + 60, id })),
      });
    const { span } = await range(page);
    await send("touchStart", 150, 200);
    for (const by of [20, 40, 60]) await send("touchMove", 150 - by, 200 + by);
    await send("touchEnd");
    await expect.poll(async () => (await range(page)).span).toBeLessThan(span / 2);
    const { from } = await range(page);
    await send("touchStart", 100);
    for (const by of [20, 40, 60]) await send("touchMove", 100 + by);
    await send("touchEnd");
    await expect.poll(async () => (await range(page)).from).toBeLessThan(from);
  }));

it("an arrow that is clicked is chosen; a slider goes through the messages step by step", () =>
  visit({}, async (page) => {
    await page.evaluate("showSynthetic(4, 12)");
    await page.waitForFunction("strip.view.arrows.length === 12");
    const place = (await page.evaluate(
      "(({ x0, y0, x1, y1 }) => ({ x: (x0 + x1) / 2, y: (y0 + y1) / 2 }))(strip.view.arrows.find(({ lane, place }) => lane === 1 && place === 1))",
    )) as { x: number; y: number };
    await picture(page).click({ position: place });
    const text = (key: string) => page.locator(`dd[data-key=${key}]`).textContent();
    await expect.poll(() => text("message")).toMatch(/^id 1, number \d+, 8 bytes$/);
    const us = async (key: string) => Number(await page.locator(`dd[data-key=${key}]`).getAttribute("data-us"));
    expect((await us("handler")) - (await us("send"))).toBeCloseTo(2.5, 6);
    expect(await text("lane")).toBe("2.5 µs");
    expect(await text("runs")).toBe("400 ns");
    await page.getByText("12 messages are sent in this picture.").waitFor();
    for (const step of [1, 5, 12, 3]) {
      await page.getByLabel("Messages, step by step").fill(String(step));
      await expect.poll(() => text("message")).toBe(`id 1, number ${step}, 8 bytes`);
    }
    await page.getByRole("button", { name: "Next message" }).click();
    await expect.poll(() => text("message")).toBe("id 1, number 4, 8 bytes");
    await page.getByRole("button", { name: "Previous message" }).click();
    await expect.poll(() => text("message")).toBe("id 1, number 3, 8 bytes");
  }));

it("what is saved for Perfetto keeps to the format", () =>
  visit({}, async (page) => {
    await startJob(page);
    expect(faultsOfTrace((await page.evaluate("text()")) as string)).toEqual([]);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Open in Perfetto" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("pamir-trace.json");
    const text = readFileSync(await download.path(), "utf8");
    expect(faultsOfTrace(text)).toEqual([]);
    const { traceEvents } = JSON.parse(text) as { traceEvents: { ph: string; cat: string }[] };
    for (const kind of ["send", "handler", "transfer", "fence"])
      expect(traceEvents.map(({ cat }) => cat)).toContain(kind);
    expect(traceEvents.filter(({ ph }) => ph === "s").length).toBeGreaterThan(100);
    await expect.poll(() => page.getByRole("link", { name: "ui.perfetto.dev" }).isVisible()).toBe(true);
  }));

it("the lane of a task that is killed ends; the others go on; the next job has lanes of its own", () =>
  visit({}, async (page) => {
    await startJob(page);
    await page.evaluate("kill(2)");
    await page.waitForFunction("Number.isFinite(strip.model.laneOf(2)?.ended)");
    const last = (await page.evaluate("strip.model.end")) as number;
    await page.waitForFunction(`strip.model.end > ${last} + 1000`);
    expect(await page.evaluate("Number.isFinite(strip.model.laneOf(1).ended)")).toBe(false);
    await pause(page);
    await page.getByRole("button", { name: "Show all" }).click();
    await expect.poll(() => label(page)).toMatch(/task 2 has ended\.$/);
    expect(await page.evaluate("strip.model.laneOf(2).ended < strip.model.end")).toBe(true);
    await page.getByRole("button", { name: "Live" }).click();
    await startJob(page);
    expect(await page.evaluate("strip.model.lanes.some(({ ended }) => Number.isFinite(ended))")).toBe(false);
    // A task that comes later says so.
    await page.evaluate("spawn()");
    await page.waitForFunction("strip.model.lanes.length === 6");
    expect(await page.evaluate("strip.model.lanes.map(({ name }) => name).slice(4)")).toEqual([
      "task 4",
      "task 5, spawned",
    ]);
  }));

it("a trace of a million events is there, and is scrubbed and zoomed", () =>
  visit({}, async (page) => {
    await page.evaluate("showSynthetic(8, 500_000)");
    await page.waitForFunction("strip.view.arrows.length > 0");
    expect(await label(page)).toMatch(/^8 lanes: .*500,000 sends, 500,000 handlers/);
    const counts: number[] = [];
    // What a picture draws does not grow with the events.
    for (let times = 0; times < 12; times++) {
      await page.getByRole("button", { name: "Zoom in" }).click();
      await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
      counts.push((await page.evaluate("strip.view.arrows.length")) as number);
    }
    expect(Math.max(...counts)).toBeLessThan(8 * 1000);
    expect(Math.min(...counts)).toBeGreaterThan(0);
    const drawn = (await page.evaluate(`(async () => {
      strip.range.fit();
      const before = performance.now();
      for (let i = 0; i < 30; i++) {
        strip.range.zoom(0.8, 0.3);
        strip.view.draw(strip.model, strip.range, { lanes: strip.shownLanes(), chosen: undefined, steps: [] });
      }
      return (performance.now() - before) / 30;
    })()`)) as number;
    expect(drawn).toBeGreaterThan(0);
    if (PICTURES !== undefined) console.log(`a picture of 10^6 events: ${drawn.toFixed(1)} ms`);
    await page.getByRole("button", { name: "Show all" }).click();
    if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, "strip-million.png"), fullPage: true });
  }));

it("a long trace that is taken up in slices has the same lanes and arrows", () =>
  visit({}, async (page) => {
    const [isSame, turns, arrows] = (await page.evaluate(`(async () => {
      let turns = 0, isOver = false;
      const turn = () => { turns++; if (!isOver) setTimeout(turn); };
      setTimeout(turn);
      const [whole, sliced] = await inSlices(5, 100_000);
      isOver = true;
      return [JSON.stringify(whole) === JSON.stringify(sliced), turns, sliced.arrows];
    })()`)) as [boolean, number, number];
    expect([isSame, arrows]).toEqual([true, 100_000]);
    // The page had its turn in between.
    expect(turns).toBeGreaterThan(2);
  }));

it.each([{ width: 1000 }, { width: 390, headers: {} }])("steps through an allreduce as a tree, at %o", (view) =>
  visit(view, async (page) => {
    await page.getByRole("button", { name: "Step through an allreduce" }).click();
    await page.waitForFunction("strip.tour !== undefined");
    // The sums that the tasks got by the operation, and what the messages of its trace add up to.
    expect(await page.evaluate("[strip.tour.sums, strip.tour.sum]")).toEqual([Array(8).fill(36), 36]);
    expect(await page.evaluate("[strip.model.lanes.length, strip.model.arrows]")).toEqual([8, 14]);
    const texts = () => page.locator(".strip-tour li").allInnerTexts();
    expect((await texts())[0]).toMatch(/^8 tasks add up their numbers, .*: 14 messages in 6 rounds\.$/);
    // By keyboard: the button that goes on has the focus.
    const rounds: string[][] = [];
    for (let round = 1; round <= 6; round++) {
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: `Round ${round} of 6` }).waitFor();
      rounds.push(await texts());
      const seen = await page.evaluate(`(() => {
        const { rounds } = strip.tour, { range, model } = strip;
        const sends = rounds[${round - 1}].arrows.map(({ lane, place }) => [model.lanes[lane].tracks.send, place]);
        return sends.every(([send, at]) => send.begin[at] >= range.from && send.arrival[at] <= range.to);
      })()`);
      expect(seen).toBe(true);
    }
    // Messages of later rounds may come first on a busy machine: task 1 gets three of them, and task 5 two.
    const first = [
      /^task 2 sends its number, 2, to task 1, which has (3|10|29|36) now\.$/,
      /^task 4 sends its number, 4, to task 3, which has 7 now\.$/,
      /^task 6 sends its number, 6, to task 5, which has (11|26) now\.$/,
      /^task 8 sends its number, 8, to task 7, which has 15 now\.$/,
    ];
    expect(rounds[0]!.toSorted()).toEqual(first.map((text) => expect.stringMatching(text)));
    expect(rounds.flat().filter((text) => text.includes("the sum of all, 36,"))).toHaveLength(7);
    expect(rounds[5]!.at(-1)).toBe("Now each task has 36.");
    await picture(page).focus();
    await page.keyboard.press("p");
    await page.getByRole("heading", { name: "Round 5 of 6" }).waitFor();
    expect(await texts()).toEqual(rounds[4]);
    expect(await faults(page)).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(view.width);
    if (PICTURES !== undefined)
      await page.screenshot({ path: join(PICTURES, `tree-${view.width}.png`), fullPage: true });
    await page.getByRole("button", { name: "Live" }).click();
    expect(await page.locator(".strip-tour").isVisible()).toBe(false);
    // Left before its tasks are there.
    const walk = page.getByRole("button", { name: "Step through an allreduce" });
    await page.evaluate("strip.panel.buttons.tour.click(), strip.panel.buttons.pause.click()");
    await expect.poll(() => walk.isEnabled(), { timeout: PATIENCE }).toBe(true);
    expect(await page.evaluate("[strip.isLive, strip.tour === undefined, strip.panel.tour.hidden]")).toEqual([
      true,
      true,
      true,
    ]);
  }),
);

it("with reduced motion nothing moves before it is asked for", () =>
  visit({ reducedMotion: "reduce" }, async (page) => {
    await page.evaluate(`start(${ROUNDS})`);
    expect(await label(page)).toBe("Nothing runs yet.");
    await page.getByRole("button", { name: "Live" }).click();
    await page.waitForFunction("strip.model.arrows > 0");
  }));

it("not isolated, each task gives its events by a message", () =>
  visit({ headers: {} }, async (page) => {
    await page.evaluate(`start(${ROUNDS})`);
    await page.waitForFunction(
      "strip.model.lanes.filter(({ tracks }) => tracks.send.size + tracks.handler.size > 0).length === 4",
    );
    await page.waitForFunction("strip.model.arrows > 10");
    await pause(page);
    expect(await page.evaluate("strip.model.arrows")).toBeGreaterThan(10);
    expect(await page.evaluate("strip.model.lanes.length")).toBe(5);
  }));
