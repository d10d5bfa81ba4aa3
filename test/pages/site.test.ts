// The site, as any static host would have it, in a folder of its own: links, search, the front.
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { filesOf, ISOLATION, onPage, openBrowser, serve } from "./support.js";

const BASE = "/pamir/";
const ADDRESS = `https://example.org${BASE}`;
let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-site-"));
  const args = ["scripts/site.mjs", "--build", folder, "--address", ADDRESS];
  const env = { ...process.env, NODE_ENV: "production" };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env });
  expect(`${stdout}${stderr}`).not.toMatch(/warn|dead link/i);
}, 600_000);

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A static host, which has the site in a folder. */
function hosted(headers: Record<string, string>): RequestListener {
  const answer = filesOf(folder, headers);
  return (request, response) => {
    request.url = request.url?.replace(BASE, "/");
    return answer(request, response);
  };
}

it("every link leads to a page or file of the site, and to a place in it", () => {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const files = new Set(names);
  const pages = names.filter((name) => name.endsWith(".html"));
  const text = new Map(pages.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  const wrong: string[] = [];
  for (const [page, html] of text) {
    for (const [, link = ""] of html.matchAll(/(?:href|src)="([^"]+)"/g)) {
      if (/^(\w+:|$)/.test(link)) continue;
      const { pathname, hash } = new URL(link, `http://localhost${BASE}${page}`);
      const path = decodeURIComponent(pathname.slice(BASE.length));
      const file = path === "" || path.endsWith("/") ? `${path}index.html` : path;
      const anchor = decodeURIComponent(hash.slice(1));
      if (!pathname.startsWith(BASE) || !files.has(file)) wrong.push(`${page}: ${link}`);
      else if (anchor !== "" && !text.get(file)?.includes(`id="${anchor}"`)) wrong.push(`${page}: no ${link}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(pages.length).toBeGreaterThan(60);
});

it("the pages of the demo lead to the documents of the site, each at its section", () => {
  for (const name of ["index.html", "frames.html"]) {
    const html = readFileSync(join(folder, name), "utf8");
    const links = [...html.matchAll(/<pre><code data-code=/g)].length;
    expect([...html.matchAll(/href="docs\/[^"]+\.html#[^"]+"/g)].length).toBeGreaterThanOrEqual(links);
    expect(html).not.toMatch(/href="[^"]+\.md/);
  }
});

it("the front and the page of frames have an absolute address and picture, for links to them", () => {
  for (const [name, url] of [
    ["index.html", ADDRESS],
    ["frames.html", `${ADDRESS}frames.html`],
  ] as const) {
    const html = readFileSync(join(folder, name), "utf8");
    const of = (property: string) => new RegExp(`<meta property="og:${property}" content="([^"]+)"`).exec(html)?.[1];
    expect([of("url"), of("image")]).toEqual([url, `${ADDRESS}tank.png`]);
    expect(readFileSync(join(folder, "tank.png")).subarray(1, 4).toString()).toBe("PNG");
    expect([of("image:width"), of("image:height")]).toEqual(["1200", "630"]);
  }
});

it.each([
  [["--base", "pamir"], 'site: --base is "pamir", not a path such as /pamir/'],
  [["--address", "example.org"], 'site: --address is "example.org", not a URL such as https://example.org/pamir/'],
  [["--address", ADDRESS, "--base", "/"], 'site: --base is "/", not /pamir/, the path of --address'],
])("refuses %j", async (args, text) => {
  const refused = promisify(execFile)(process.execPath, ["scripts/site.mjs", ...args]);
  await expect(refused).rejects.toMatchObject({ code: 2, stderr: `${text}\n` });
});

it("the search finds a section, and leads there", () =>
  serve(hosted(ISOLATION), (url) =>
    onPage(browser, "about:blank", async (page) => {
      const wrong: string[] = [];
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) wrong.push(message.text());
      });
      page.on("pageerror", (error) => wrong.push(String(error)));
      await page.goto(`${url.slice(0, -1)}${BASE}docs/tutorial.html`);
      // The keys are heard once the page's app is there.
      await page.waitForFunction("document.querySelector('#app').__vue_app__ !== undefined");
      await page.keyboard.press("Control+k");
      await page.getByRole("searchbox").fill("PAMIR_TICKET_EXPIRED");
      await page.getByRole("option", { name: "PAMIR_TICKET_EXPIRED" }).first().click();
      await page.getByRole("heading", { level: 1, name: "Errors" }).waitFor();
      expect(page.url()).toMatch(/docs\/errors\.html#pamir_ticket_expired$/i);
      expect(wrong).toEqual([]);
    }),
  ));

it("the front is the demo, isolated also where the host gives no headers", () =>
  serve(hosted({}), (url) =>
    onPage(browser, `${url.slice(0, -1)}${BASE}`, async (page) => {
      await page.waitForFunction("crossOriginIsolated", undefined, { timeout: 60_000 });
      expect(await page.title()).toMatch(/^pamir/);
      // The page reloads once the service worker is there.
      await page.getByRole("link", { name: "Tutorial" }).click();
      await page.getByRole("heading", { level: 1, name: "Tutorial" }).waitFor();
    }),
  ));

it("the charts of the benchmarks have the machine, the date and the command beside them", () => {
  const html = readFileSync(join(folder, "benchmarks.html"), "utf8");
  for (const [, chart = ""] of html.matchAll(/src="\/pamir\/(charts\/[^"]+)"/g))
    expect(readFileSync(join(folder, chart), "utf8")).toContain("<svg");
  expect(html).toMatch(/npx pamir perf --test am_lat<\/code>, on .*, Node \d+\.\d+\.\d+, 20\d\d-\d\d-\d\d/);
});
