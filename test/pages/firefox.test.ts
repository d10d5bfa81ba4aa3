// The API's suite and the kernels' in Firefox, on a page with headers and on one without; driven by WebDriver BiDi.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "puppeteer-core";
import { createServer } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sequential } from "../../demo/tank/water.js";
import { buildDemo } from "../../scripts/demo.mjs";
import { openMeeting } from "../../scripts/meeting.mjs";
import type { Outcome } from "../browser/isolated/conformance/vitest.js";
import { ALIAS, DEPENDENCIES, ENVIRONMENT, ISOLATION, shims } from "../browser/shims.js";
import { freePort } from "../support/free-port.js";
import { isFirefoxSkipped, openFirefox } from "./firefox.js";
import { filesOf, serve } from "./support.js";
import { type AnyPage, buildPages, hosted, talk } from "./web-hosted.js";

describe.skipIf(isFirefoxSkipped())("Firefox", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openFirefox();
  });
  afterAll(() => browser?.close());

  it.each([
    { page: "isolated", headers: ISOLATION, least: 700 },
    { page: "not isolated", headers: {}, least: 20 },
  ])(
    "$page",
    async ({ headers, least }) => {
      const plugin = shims(/\/test\/(conformance|support)\//);
      const server = await createServer({
        configFile: false,
        logLevel: "error",
        plugins: [plugin],
        worker: { format: "es", plugins: () => [plugin] },
        optimizeDeps: { include: DEPENDENCIES },
        define: ENVIRONMENT,
        resolve: { alias: ALIAS },
        server: { headers, port: 0 },
      });
      await server.listen();
      try {
        const page = await browser.newPage();
        // What the page has to say where it comes to no end: a script that was not loaded, say.
        const said: string[] = [];
        page.on("pageerror", (error) => said.push(String(error)));
        page.on("console", (message) => said.push(message.text()));
        await page.goto(`${server.resolvedUrls?.local[0]}test/browser/firefox/index.html`);
        // Asked again and again: where it hangs, what came before tells where.
        let isOver = false;
        for (let tries = 0; !isOver && tries < 4000; tries++) {
          await new Promise((resolve) => setTimeout(resolve, 200));
          isOver = (await page.evaluate("globalThis.isOver === true")) as boolean;
        }
        const outcomes = (await page.evaluate("globalThis.outcomes ?? []")) as Outcome[];
        const last = `${outcomes.length} tests, then ${JSON.stringify(outcomes.at(-1))}; ${said.slice(-5).join("\n")}`;
        expect(isOver, `hangs: ${last}`).toBe(true);
        expect(outcomes.filter((outcome) => "error" in outcome)).toEqual([]);
        expect(await page.evaluate("globalThis.declared")).toBeGreaterThan(least);
        expect(outcomes.length).toBeGreaterThan(0);
        console.log(`Firefox: ${outcomes.length} tests of ${await page.evaluate("globalThis.declared")}`);
        await page.close();
      } finally {
        await server.close();
      }
    },
    900_000,
  );

  it.each(["index.html", "worker.html"])("pamir/web: %s joins a job of this process by a ticket", async (file) => {
    const { folder, remove } = await buildPages();
    const newPage = (): Promise<AnyPage> => browser.newPage();
    try {
      await hosted(folder, {}, newPage, async (given) => {
        const { calls } = await given.open(undefined, file);
        await talk(given, calls);
      });
    } finally {
      remove();
    }
  });

  it.each([
    { policy: "none", headers: {}, engine: "thread" },
    { policy: "one that forbids it", headers: { "Content-Security-Policy": "worker-src 'self'" }, engine: "ended" },
  ])("P11: a page that sends by an engine thread; policy: $policy", async ({ headers, engine }) => {
    const folder = mkdtempSync(join(tmpdir(), "pamir-firefox-"));
    await buildDemo(folder);
    try {
      await serve(filesOf(folder, { ...ISOLATION, ...headers }), async (url) => {
        const page = await browser.newPage();
        await page.goto(`${url}frames.html?mebibytes=8`);
        await page.click("#run");
        await page.waitForFunction("/^(Done|It ended)/.test(document.getElementById('status').textContent)");
        const json = (await page.evaluate("document.getElementById('json').textContent")) as string;
        expect(JSON.parse(json).results).toMatchObject([
          { by: "engine inline", engine: "inline", right: true },
          { by: "engine thread", engine, right: true },
          { by: "postMessage (clone)", right: true },
        ]);
        await page.close();
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("the wave tank: a worker is killed and started again, and the numbers are those of the sequential program", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pamir-tank-"));
    await buildDemo(folder);
    try {
      await serve(filesOf(folder, ISOLATION), async (url) => {
        const page = await browser.newPage();
        await page.goto(`${url}?grid=64&workers=3&rate=1000`);
        await page.waitForFunction("globalThis.tank?.tank?.step > 20", { timeout: 60_000 });
        // The buttons are made anew as rows are shared: page.click() may have one that is gone.
        await page.locator("[aria-label='Kill worker 2']").click();
        await page.waitForFunction("/^Worker 2 is gone/.test(document.getElementById('status').textContent)", {
          timeout: 60_000,
        });
        await page.locator(".restart").click();
        await page.waitForFunction("document.querySelectorAll('.kill').length === 3", { timeout: 60_000 });
        const step = (await page.evaluate("tank.still()")) as number;
        const water = (await page.evaluate("Array.from(tank.water())")) as number[];
        expect(Float32Array.from(water)).toEqual(sequential(64, step));
        await page.close();
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("more machines: a page joins the tank by a ticket, is closed, and the numbers are those of the sequential program", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pamir-more-"));
    await buildDemo(folder, { hasClang: false });
    const meeting = await openMeeting(folder, { port: await freePort(), command: "npm run demo" });
    const patience = { timeout: 60_000 };
    try {
      const page = await browser.newPage();
      await page.goto(`${meeting.urls[0]}?grid=64&workers=2&rate=1000`);
      await page.waitForFunction("globalThis.tank?.tank?.step > 20", patience);
      await page.evaluate("document.getElementById('invite').click()");
      await page.waitForFunction("/is ready/.test(document.getElementById('more-status').textContent)", patience);
      const guest = await browser.newPage();
      await guest.goto((await page.evaluate("document.getElementById('link').value")) as string);
      await guest.waitForFunction(
        "Number(document.getElementById('step').textContent.replace(',', '')) > 100",
        patience,
      );
      const step = (await page.evaluate("tank.still()")) as number;
      const water = (await page.evaluate("Array.from(tank.water())")) as number[];
      expect(Float32Array.from(water)).toEqual(sequential(64, step));
      await guest.close();
      await page.waitForFunction("tank.pages.running.length === 0", patience);
      await page.close();
    } finally {
      await meeting.close();
      rmSync(folder, { recursive: true });
    }
  });
});
