// "More machines" of the demo as visitors have it: another page joins the tank by a ticket, computes a part of the rows, is
// painted on, closed under load, and comes again; tickets that are used, wrong or dead are answered in words.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sequential } from "../../demo/tank/water.js";
import { buildDemo } from "../../scripts/demo.mjs";
import { openMeeting } from "../../scripts/meeting.mjs";
import { freePort } from "../support/free-port.js";
import { filesOf, ISOLATION, onPage, openBrowser, serve } from "./support.js";

/** Where a machine that keeps pictures wants them. */
const PICTURES = process.env.PAMIR_PICTURES;

let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-more-"));
  await buildDemo(folder, { hasClang: false });
  if (PICTURES !== undefined) mkdirSync(PICTURES, { recursive: true });
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

const PATIENCE = { timeout: 60_000 };

interface Room {
  readonly url: string;
  /** The page with the tank. */
  readonly page: Page;
  /** Opens a page in the same browser, on whose console nothing may be wrong. */
  readonly open: (url: string) => Promise<Page>;
  /** Ends the server. */
  readonly close: () => Promise<void>;
}

/** The demo as `npm run demo` serves it, with a tank; nothing may be wrong on a console. */
async function room(
  query: string,
  body: (room: Room) => Promise<void>,
  { host, silence, ...view }: BrowserContextOptions & { readonly host?: string; readonly silence?: number } = {},
): Promise<void> {
  const meeting = await openMeeting(folder, { port: await freePort(), host, silence, command: "npm run demo" });
  const context = await browser.newContext({ viewport: { width: 1000, height: 900 }, ...view });
  const wrong: string[] = [];
  const open = async (url: string) => {
    const page = await context.newPage();
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) wrong.push(message.text());
    });
    page.on("pageerror", (error) => wrong.push(String(error)));
    await page.goto(url);
    return page;
  };
  try {
    const url = meeting.urls[0] as string;
    const page = await open(`${url}?${query}`);
    await body({ url, page, open, close: () => meeting.close() });
    expect(wrong).toEqual([]);
  } finally {
    await context.close();
    await meeting.close();
  }
}

const stepOf = async (page: Page): Promise<number> =>
  Number(((await page.locator("#step").textContent()) ?? "").replace(/[,–]/g, ""));

/** Waits until it goes on by so many steps. */
async function goesOn(page: Page, steps = 1): Promise<void> {
  const step = await stepOf(page);
  await expect.poll(() => stepOf(page), PATIENCE).toBeGreaterThanOrEqual(step + steps);
}

/** The link of a new ticket. */
async function invite(page: Page): Promise<string> {
  await page.getByRole("button", { name: "Invite a page" }).click();
  await page
    .getByText(/^The ticket for page \d is ready\. It admits one page, once, within 5 minutes\.$/)
    .waitFor(PATIENCE);
  return page.getByLabel("Link for the other page").inputValue();
}

/** Another page with a part of the tank. */
async function joined({ page, open }: Room): Promise<Page> {
  const guest = await open(await invite(page));
  await guest.getByText(/^This page has rows \d+ to \d+ of \d+\.$/).waitFor(PATIENCE);
  await page.getByText(/^Page \d has joined, and gets rows\.$/).waitFor(PATIENCE);
  return guest;
}

/** Brings all rows to one step; the numbers there are those of the sequential program. */
async function isRight(page: Page, size: number): Promise<void> {
  const step = await page.evaluate<number>("tank.still()");
  expect(step).toBeGreaterThan(0);
  const water = Float32Array.from(await page.evaluate<number[]>("Array.from(tank.water())"));
  const wanted = sequential(size, step);
  const wrong = Array.from({ length: size }, (_, row) => row).filter((row) =>
    wanted.subarray(row * size, (row + 1) * size).some((height, x) => height !== water[row * size + x]),
  );
  expect(wrong).toEqual([]);
}

it("a page joins, and has rows; the numbers are those of the sequential program", () =>
  room("grid=64&workers=2&rate=1000", async (given) => {
    const { page } = given;
    const guest = await joined(given);
    await goesOn(guest, 100);
    await goesOn(page, 100);
    await isRight(page, 64);
  }));

it("two pages join: the numbers stay right, also when a worker is killed and both leave", () =>
  room("grid=64&workers=3&rate=1000", async (given) => {
    const { page } = given;
    const [first, second] = [await joined(given), await joined(given)];
    await goesOn(second, 20);
    await page.getByRole("button", { name: "Kill worker 2" }).click();
    await page.getByText(/^Worker 2 is gone/).waitFor(PATIENCE);
    await goesOn(second, 20);
    await first.getByRole("button", { name: "Leave the tank" }).click();
    await first.getByText("This page has left the tank.").waitFor(PATIENCE);
    await page.getByText(/^Page 2 has left\. Its rows are shared among the others\./).waitFor(PATIENCE);
    await goesOn(second, 20);
    await page.getByRole("button", { name: "Send page 3 away" }).click();
    await second.getByText(/^This page has no part of the tank any more\./).waitFor(PATIENCE);
    await goesOn(page, 20);
    await isRight(page, 64);
  }));

/** The height of the water at a place of the tank. */
const heightAt = (page: Page, x: number, y: number): Promise<number> =>
  page.evaluate<number>(`tank.water()[${Math.round(64 * y) * 64 + Math.round(64 * x)}]`);

it("still water is painted on either page, and the other one has it", () =>
  // With reduced motion the tank starts paused.
  room(
    "grid=64&workers=1&rate=1000",
    async (given) => {
      const { page } = given;
      const guest = await joined(given);
      const isSeen = (x: number, y: number, height: number) =>
        expect.poll(() => heightAt(page, x, y), PATIENCE).toBeGreaterThan(height);
      expect(await heightAt(page, 0.5, 0.75)).toBe(0);
      // Of the tank, the page that has joined has the lower half, and a finger in the middle of it.
      await guest.getByRole("application").focus();
      await guest.keyboard.press("Space");
      await isSeen(0.5, 0.75, 0.5);
      // At the upper border of its part the finger reaches into the other one.
      for (let i = 0; i < 14; i++) await guest.keyboard.press("ArrowUp");
      await guest.keyboard.press("Space");
      await isSeen(0.5, 31 / 64, 0.1);
      // And from the page with the tank into the other one, as that one draws it.
      await guest.getByRole("button", { name: "Show the water move" }).click();
      const picture = () => guest.evaluate<string>("document.getElementById('water').toDataURL()");
      const before = await picture();
      const water = page.getByRole("application");
      const { width = 0, height = 0 } = (await water.boundingBox()) ?? {};
      await water.click({ position: { x: width / 4, y: height * 0.75 } });
      await expect.poll(picture, PATIENCE).not.toBe(before);
      await page.getByRole("button", { name: "Run" }).click();
      await goesOn(guest, 20);
    },
    { reducedMotion: "reduce" },
  ));

/** A browser that is held up may end the connections of a page that it closes without a word: then pings find out. */
const GONE =
  /^Page 2 (was closed \(SHUTDOWN\)|did not answer for five seconds)\. Its rows go on from their last picture here, .* by another ticket\.$/;

it("the page is closed under load: the tank goes on, and it comes again by another ticket", () =>
  room("grid=64&workers=2&rate=1000", async (given) => {
    const { page } = given;
    const guest = await joined(given);
    await goesOn(guest, 20);
    await guest.close();
    await page.getByText(GONE).waitFor(PATIENCE);
    await goesOn(page, 50);
    const again = await joined(given);
    await goesOn(again, 20);
    await goesOn(page, 20);
    // It can leave as it was closed: by a reload, whose ticket is used.
    await again.reload();
    await again.getByText(/^This ticket has admitted a page before.*\(PAMIR_TICKET_USED\)/).waitFor(PATIENCE);
    await page.getByText(GONE).waitFor(PATIENCE);
    await goesOn(page, 20);
  }));

it("the page with the tank is closed: the other one says so", () =>
  room("grid=64&workers=1&rate=1000", async (given) => {
    const guest = await joined(given);
    await goesOn(guest, 5);
    await given.page.close();
    await guest.getByText(/^The tank or its server has ended.*\(SHUTDOWN\)/).waitFor(PATIENCE);
  }));

it("a page that freezes: the tank goes on without it, and it hears so when it is back", () =>
  room(
    "grid=64&workers=1&rate=1000",
    async (given) => {
      const { page } = given;
      const guest = await joined(given);
      await goesOn(guest, 5);
      // As a frozen page: its worker does nothing more, for longer than the bridge waits.
      await guest.evaluate("page.worker.postMessage({ freeze: 15_000 })");
      await page.getByText(/^Page 2 did not answer for five seconds\. /).waitFor(PATIENCE);
      await goesOn(page, 20);
      await guest
        .getByText(/^This page did not answer for five seconds, and the tank went on without it/)
        .waitFor(PATIENCE);
    },
    // And for less than the server.
    { silence: 120_000 },
  ));

it("tickets that are wrong, cut off, of another tank, or missing are answered in words", () =>
  room("grid=64&workers=1&rate=1000", async ({ page, url, open }) => {
    const link = await invite(page);
    const at = async (text: string) => {
      const guest = await open(`${url}more.html${text}`);
      await guest.getByText("Ask for another ticket at the page with the tank.").waitFor(PATIENCE);
      const said = await guest.locator("#status").textContent();
      expect(await guest.getByRole("button", { name: "Leave the tank" }).isDisabled()).toBe(true);
      await guest.close();
      return said;
    };
    const hash = new URL(link).hash;
    expect(await at("")).toMatch(/^This page has no ticket\./);
    expect(await at("#nonsense")).toMatch(/^This is no ticket.*\(PAMIR_TICKET\)/);
    expect(await at(hash.slice(0, -9))).toMatch(/^(This is no ticket.*\(PAMIR_TICKET\)|The host.*\(PAMIR_TIMEDOUT\))/);
    // Another token: the bridge waits for another page.
    expect(await at(hash.replace(/\.\w/, (start) => (start === ".0" ? ".1" : ".0")))).toMatch(/\(PAMIR_TICKET\)/);
    await page.getByRole("button", { name: "Invite a page" }).click();
    await page.getByText(/^The ticket for page 2 is ready/).waitFor(PATIENCE);
  }));

it("a host that has gone: the page says so in words, and so does the button", async () => {
  const meeting = await openMeeting(folder, { port: await freePort(), command: "npm run demo" });
  const other = await openMeeting(folder, { port: await freePort(), command: "npm run demo" });
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`${meeting.urls[0]}?grid=64&workers=1`);
    const link = await invite(page);
    await meeting.close();
    const guest = await context.newPage();
    await guest.goto(`${other.urls[0]}more.html${new URL(link).hash}`);
    await guest.getByText(/^The host of this ticket does not answer.*\(PAMIR_TIMEDOUT\)/).waitFor(PATIENCE);
    await page.getByRole("button", { name: "Invite a page" }).click();
    await page.getByText("No page can join: the server of this page does not answer").waitFor(PATIENCE);
    await goesOn(page, 5);
  } finally {
    await context.close();
    await Promise.all([meeting.close(), other.close()]);
  }
});

const hasNetwork = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .some(({ family, internal }) => family === "IPv4" && !internal);

it.skipIf(!hasNetwork)("a page by plain HTTP from another machine is not isolated: it says so, and has its rows", () =>
  room(
    "grid=64&workers=1&rate=1000",
    async (given) => {
      const { page } = given;
      expect(await page.getByText("The server of this page listens on this machine alone").isVisible()).toBe(false);
      const guest = await joined(given);
      expect(new URL(guest.url()).hostname).not.toBe("localhost");
      expect(await guest.evaluate("crossOriginIsolated")).toBe(false);
      await guest.getByText("This page is not cross-origin isolated, as no page is that comes by plain HTTP").waitFor();
      await goesOn(guest, 20);
      await isRight(page, 64);
      // The tank, from there: it takes no pages, and says why.
      const other = await given.open(`${new URL("./", guest.url())}?grid=64&workers=1`);
      await other.getByText("One worker runs the tank by pamir").waitFor(PATIENCE);
      await other.getByRole("button", { name: "Invite a page" }).click();
      await other.getByText("This page is not cross-origin isolated, and a tank without shared memory").waitFor();
    },
    { host: "0.0.0.0" },
  ),
);

it("a static host: it says why no page can join, and how one could; nothing is offered that fails", () =>
  serve(filesOf(folder, ISOLATION), (url) =>
    onPage(browser, `${url}?grid=64&workers=1`, async (page) => {
      await page.getByText("This page comes from a host of static files, which can't bring pages together").waitFor();
      await page.getByText("npm run demo").waitFor();
      expect(await page.getByRole("button", { name: "Invite a page" }).count()).toBe(0);
    }),
  ));

it("by postMessage it says why no page can join", () =>
  room("grid=64&workers=1", async ({ page }) => {
    await page.getByLabel("the same by postMessage").check();
    await page.getByText("One worker runs the tank by postMessage").waitFor(PATIENCE);
    await page.getByRole("button", { name: "Invite a page" }).click();
    await page.getByText("By postMessage there is no way to other machines").waitFor();
  }));

it("the strip has a lane of the page, with arrows to and from its bridge", () =>
  room("grid=64&workers=1&rate=1000", async (given) => {
    const { page } = given;
    const guest = await joined(given);
    await goesOn(guest, 20);
    const strip = page.locator("#strip canvas");
    await strip.scrollIntoViewIfNeeded();
    await expect.poll(() => strip.getAttribute("aria-label"), PATIENCE).toMatch(/task 2, to page 2, page 2\./);
    // A worker that is started again says so, beside them.
    await page.getByRole("button", { name: "Kill worker 1" }).click();
    await page.getByRole("button", { name: "Start worker 1 again" }).click();
    await strip.scrollIntoViewIfNeeded();
    await expect.poll(() => strip.getAttribute("aria-label"), PATIENCE).toMatch(/task 3, spawned/);
    await goesOn(guest, 20);
    const trace = await page.evaluate<{ ph: string; tid: number; id?: number }[]>("tank.tracedJob.trace().traceEvents");
    const arrows = (ph: string, isGuest: boolean) =>
      new Set(trace.filter((event) => event.ph === ph && event.tid >= 1000 === isGuest).map(({ id }) => id));
    const [sent, came] = [arrows("s", true), arrows("f", false)];
    expect([...sent].filter((id) => came.has(id)).length).toBeGreaterThan(10);
    const [down, heard] = [arrows("s", false), arrows("f", true)];
    expect([...down].filter((id) => heard.has(id)).length).toBeGreaterThan(10);
  }));

it.each([
  { width: 360, colorScheme: "light" },
  { width: 360, colorScheme: "dark" },
  { width: 1920, colorScheme: "dark" },
] as const)("both pages are whole at %o, and axe finds nothing", ({ width, colorScheme }) =>
  room("grid=256&workers=2", async (given) => {
    const { page } = given;
    const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    const isWhole = async (each: Page, name: string) => {
      await each.emulateMedia({ colorScheme });
      await each.setViewportSize({ width, height: 900 });
      expect(await each.evaluate("document.documentElement.scrollWidth")).toBe(width);
      await each.evaluate(axe);
      const { violations } = await each.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
        "axe.run()",
      );
      expect(violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])).toEqual([]);
      if (PICTURES !== undefined) {
        await each.screenshot({ path: join(PICTURES, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      }
    };
    await invite(page);
    await isWhole(page, "more-invitation");
    const guest = await joined(given);
    await goesOn(guest, 5);
    await isWhole(guest, "more-guest");
    await isWhole(page, "more-page");
  }),
);

it("reduced motion: the water of the page stands still until it is asked for", () =>
  room("grid=64&workers=1&rate=1000", async ({ page, open }) => {
    const link = await invite(page);
    const guest = await open("about:blank");
    await guest.emulateMedia({ reducedMotion: "reduce" });
    await guest.goto(link);
    await goesOn(guest, 5);
    const picture = () => guest.evaluate<string>("document.getElementById('water').toDataURL()");
    const before = await picture();
    await goesOn(guest, 20);
    expect(await picture()).toBe(before);
    await guest.getByRole("button", { name: "Show the water move" }).click();
    await expect.poll(picture, PATIENCE).not.toBe(before);
  }));
