// The demo in the hands of clumsy and of hostile visitors: odd orders, junk, a server that goes. What the page says stays true.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildDemo } from "../../scripts/demo.mjs";
import { openMeeting } from "../../scripts/meeting.mjs";
import { freePort } from "../support/free-port.js";
import { openBrowser } from "./support.js";

const PATIENCE = { timeout: 60_000 };

let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-clumsy-"));
  await buildDemo(folder, { hasClang: false });
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Room {
  readonly page: Page;
  readonly open: (address: string) => Promise<Page>;
  /** Ends the server. */
  readonly close: () => Promise<void>;
}

/** The demo as `npm run demo` serves it. No error of a script may be uncaught. */
async function room(query: string, body: (room: Room) => Promise<void>): Promise<void> {
  const meeting = await openMeeting(folder, { port: await freePort(), command: "npm run demo" });
  const context = await browser.newContext({ viewport: { width: 1000, height: 900 } });
  const wrong: string[] = [];
  const open = async (address: string) => {
    const page = await context.newPage();
    page.on("pageerror", (error) => wrong.push(String(error)));
    await page.goto(new URL(address, meeting.urls[0]).href);
    return page;
  };
  try {
    const page = await open(`?${query}&grid=64&rate=1000`);
    await body({ page, open, close: () => meeting.close() });
    expect(wrong).toEqual([]);
  } finally {
    await context.close();
    await meeting.close();
  }
}

const workers = (page: Page) => page.getByRole("button", { name: /^Kill worker \d+$/ });
const said = (page: Page) => page.locator("#status").textContent();
const more = (page: Page) => page.locator("#more-status").textContent();
const stepOf = async (page: Page): Promise<number> =>
  Number(((await page.locator("#step").textContent()) ?? "").replace(/[,–]/g, ""));

/** Waits until it goes on. */
async function goesOn(page: Page): Promise<void> {
  const step = await stepOf(page);
  await expect.poll(() => stepOf(page), PATIENCE).toBeGreaterThan(step);
}

/** The link of a new ticket. */
async function invite(
  page: Page,
  press = () => page.getByRole("button", { name: "Invite a page" }).click(),
): Promise<string> {
  await press();
  await page.getByText(/^The ticket for page \d is ready\./).waitFor(PATIENCE);
  return page.getByLabel("Link for the other page").inputValue();
}

it("all workers are killed at once, and one is started: none is said to have gone on without the others", () =>
  room("workers=2", async ({ page }) => {
    await expect.poll(() => workers(page).count(), PATIENCE).toBe(2);
    await goesOn(page);
    await page.evaluate("document.querySelectorAll('.parts button').forEach((each) => each.click())");
    await expect.poll(() => said(page)).toBe("Worker 2 is killed: none is left, and the water stands still.");
    await page.getByRole("button", { name: "Start worker 2 again" }).click(PATIENCE);
    await expect.poll(() => workers(page).count(), PATIENCE).toBe(1);
    await goesOn(page);
    expect(await said(page)).toBe("Worker 2 starts again, and gets rows.");
  }));

it("the only worker is killed by postMessage: nothing is said to have begun again", () =>
  room("workers=1", async ({ page }) => {
    await page.getByLabel("the same by postMessage").check();
    await page.getByText("One worker runs the tank by postMessage").waitFor(PATIENCE);
    await page.getByRole("button", { name: "Kill worker 1" }).click();
    expect(await said(page)).toBe("Worker 1 is killed: none is left, and all rows are lost.");
    await page.getByRole("button", { name: "Start worker 1 again" }).click();
    await goesOn(page);
  }));

it("with a page that has joined, all workers are killed: that one goes on; the tank is started anew without it", () =>
  room("workers=1", async ({ page, open }) => {
    const guest = await open(await invite(page));
    await guest.getByText(/^This page has rows/).waitFor(PATIENCE);
    await expect.poll(() => more(page), PATIENCE).toBe("Page 2 has joined, and gets rows.");
    await page.getByRole("button", { name: "Kill worker 1" }).click();
    expect(await said(page)).not.toContain("none is left");
    await page.getByRole("button", { name: "Start worker 1 again" }).waitFor(PATIENCE);
    await goesOn(page);
    await page.getByLabel("the same by postMessage").check();
    await expect
      .poll(() => more(page), PATIENCE)
      .toBe("The tank was started anew, without its other pages: they can come again, by tickets.");
    await guest.getByText(/^The tank or its server has ended/).waitFor(PATIENCE);
    // Its visitor puts the link of another ticket into the same tab.
    await page.getByLabel("the same by postMessage").uncheck();
    await page.getByText("One worker runs the tank by pamir.").waitFor(PATIENCE);
    const link = await invite(page);
    await guest.evaluate(`location.href = ${JSON.stringify(link)}`);
    await guest.getByText(/^This page has rows/).waitFor(PATIENCE);
  }));

it("the tank is started anew while a page is invited: the button is there again", () =>
  room("workers=1", async ({ page }) => {
    await goesOn(page);
    // The bridge is held up: it does not answer before the tank ends.
    await page.evaluate("tank.pages.here = () => {}");
    await page.getByRole("button", { name: "Invite a page" }).click();
    await expect.poll(() => page.evaluate("tank.pages.list.length"), PATIENCE).toBe(1);
    await page.getByLabel("the same by postMessage").check();
    await page.getByText("No page can join: SHUTDOWN: the tank was started anew").waitFor(PATIENCE);
    expect(await page.getByRole("button", { name: "Invite a page" }).isEnabled()).toBe(true);
  }));

it("the server has gone: what is loaded late says so", () =>
  room("workers=1", async ({ page, close, open }) => {
    await goesOn(page);
    const frames = await open("frames.html?mebibytes=1");
    await close();
    await page.getByRole("heading", { name: "An MPI program, unchanged" }).scrollIntoViewIfNeeded();
    await page.getByText(/^This part can't be loaded: .* Reload the page once its server answers\.$/).waitFor(PATIENCE);
    await page.getByRole("button", { name: "Start the race" }).click();
    await page.getByText(/^The race ended early: /).waitFor(PATIENCE);
    await frames.getByRole("button").first().click();
    await frames.getByText(/^It ended early: /).waitFor(PATIENCE);
  }));

it("the server ends with a page that has joined and one that is invited: tickets are void; started again, it has new ones", () =>
  room("workers=1", async ({ page, close, open }) => {
    const guest = await open(await invite(page));
    await guest.getByText(/^This page has rows/).waitFor(PATIENCE);
    await expect.poll(() => more(page), PATIENCE).toBe("Page 2 has joined, and gets rows.");
    await invite(page);
    await close();
    await expect
      .poll(() => more(page), PATIENCE)
      .toBe(
        "The server of this page has ended: tickets are void, and rows of pages that had joined go on from their last picture here.",
      );
    expect(await page.locator("#invitation").isVisible()).toBe(false);
    await guest.getByText(/^The tank or its server has ended/).waitFor(PATIENCE);
    await goesOn(page);
    await page.getByRole("button", { name: "Invite a page" }).click();
    await expect
      .poll(() => more(page), PATIENCE)
      .toBe("No page can join: the server of this page does not answer: is it still running?");
    const again = await openMeeting(folder, { port: Number(new URL(page.url()).port), command: "npm run demo" });
    try {
      const link = await invite(page);
      await guest.evaluate(`location.href = ${JSON.stringify(link)}`);
      await guest.getByText(/^This page has rows/).waitFor(PATIENCE);
    } finally {
      await again.close();
    }
  }));

/** What has the focus. */
const focused = (page: Page) =>
  page.evaluate<string>("document.activeElement.id || document.activeElement.textContent");

it("by keyboard: its place stays where a button is disabled or goes away; at 360 px long texts wrap", () =>
  room("workers=2&milliseconds=20", async ({ page, open }) => {
    await goesOn(page);
    await page.locator("#run").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Race again" }).waitFor(PATIENCE);
    await expect.poll(() => focused(page), PATIENCE).toBe("run");
    await page.getByRole("button", { name: "Kill worker 2" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => focused(page), PATIENCE).toBe("Start worker 2 again");
    await page.keyboard.press("Enter");
    await expect.poll(() => focused(page), PATIENCE).toBe("2");
    await page.locator("#invite").focus();
    const link = await invite(page, () => page.keyboard.press("Enter"));
    await expect.poll(() => focused(page), PATIENCE).toBe("invite");
    await page.locator("#copy-link").focus();
    const guest = await open(link);
    await guest.getByText(/^This page has rows/).waitFor(PATIENCE);
    await expect.poll(() => focused(page), PATIENCE).toBe("invite");
    await page.getByRole("button", { name: "Send page 2 away" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => focused(page), PATIENCE).toBe("invite");

    for (const each of [page, guest]) {
      await each.setViewportSize({ width: 360, height: 700 });
      await each.evaluate(`for (const each of document.querySelectorAll("p:not(.lead)")) {
        each.hidden = false;
        each.textContent = "https://example.org/" + "task.js".repeat(40);
      }`);
      expect(await each.evaluate("document.documentElement.scrollWidth")).toBe(360);
    }
  }));

it("a race with junk for its time, killed as it starts: it begins again, and its figures are numbers", () =>
  room("workers=1&stop=1&milliseconds=abc", async ({ page }) => {
    await page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('denied'))");
    await page.evaluate("document.getElementById('run').click(); document.getElementById('kill').click()");
    await page.getByText("A worker of pamir, WebAssembly was killed: it begins again.").waitFor(PATIENCE);
    await page.getByRole("button", { name: "Race again" }).waitFor({ timeout: 120_000 });
    const status = page.locator("#race-status");
    expect(await status.textContent()).toMatch(
      /^Done: a message by postMessage takes [\d.,]+ times .* [\d.,]+ times as many/,
    );
    await page.getByRole("button", { name: "Copy as JSON" }).click();
    await expect
      .poll(() => status.textContent())
      .toBe("The figures are selected: copy them by the keys of this machine.");
    expect(await page.evaluate("String(getSelection()).includes('p999_ns')")).toBe(true);
  }));

it("numbers in the address that are none: the tank runs", async () => {
  for (const query of ["grid=7&workers=abc&stop=-1&rate=x", "workers=1e9&rate=Infinity", "workers=-1&rate=1e300"]) {
    await room(query, async ({ page }) => {
      if (!query.includes("stop")) await goesOn(page);
      expect(await page.evaluate("tank.water().every(Number.isFinite)")).toBe(true);
      await expect
        .poll(() => said(page), { timeout: 60_000 })
        .toMatch(/^(\d+ workers run|One worker runs) the tank by pamir\.$/);
    });
  }
});
