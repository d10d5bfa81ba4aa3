// The pages of the demo at each width and in both schemes: where their parts lie, and that no text is cut off. Pictures would
// differ by the fonts of a machine: places and widths of parts don't. PAMIR_LAYOUT=write writes page-layout.json anew.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildDemo } from "../../scripts/demo.mjs";
import { filesOf, ISOLATION, openBrowser, serve } from "./support.js";

const PICTURES = process.env.PAMIR_PICTURES;
const FACTS = new URL("page-layout.json", import.meta.url);
/** Pixels by which a place may differ: widths of letters move what stands beside a text. */
const TOLERANCE = 2;

/** Parts whose place and width come from the style alone, in the order of the page. */
const PARTS = {
  "index.html": [
    "header",
    ".picture",
    ".parts",
    ".side",
    ".figures",
    ".strip-picture",
    ".strip-legend",
    ".behind > div",
    ".behind > pre",
    "footer",
  ],
  "frames.html": ["header", ".scroll", ".behind > div", ".behind > pre", "details"],
} as const;
type Name = keyof typeof PARTS;

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
/** By page and width: place and width of each part. */
type Facts = Record<string, Record<string, readonly [x: number, width: number]>>;

let browser: Browser;
let folder: string;
const written: Facts = {};
const isWriting = process.env.PAMIR_LAYOUT === "write";
const known = JSON.parse(isWriting ? "{}" : readFileSync(FACTS, "utf8")) as Facts;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-layout-"));
  await buildDemo(folder);
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
  if (isWriting) writeFileSync(FACTS, `${JSON.stringify(written, null, 2)}\n`);
});

/** Texts that reach over the edge of the window, or of a part that cuts them off. */
const CLIPPED = `[...document.querySelectorAll("main *")].filter((each) => {
  if (each.closest(".unseen, [hidden], .scroll") || each.getClientRects().length === 0) return false;
  const cuts = getComputedStyle(each).overflowX !== "visible" && each.scrollWidth > each.clientWidth + 1;
  const { left, right } = each.getBoundingClientRect();
  return cuts || left < -1 || right > innerWidth + 1;
}).map((each) => each.outerHTML.slice(0, 80))`;

/** Parts of a page that rests: nothing moves. */
async function still(page: Page, name: Name): Promise<void> {
  if (name === "frames.html") return;
  await expect.poll(() => page.locator("button.kill").count(), { timeout: 60_000 }).toBe(3);
  await expect.poll(() => page.evaluate("tank.tank?.step"), { timeout: 60_000 }).toBe(40);
}

describe.each(["index.html", "frames.html"] as const)("%s", (name) => {
  it.each(
    [360, 390, 768, 1440, 1920].flatMap((width) => [
      { width, colorScheme: "light" as const },
      { width, colorScheme: "dark" as const },
    ]),
  )("has its parts where they belong, at %o", (view) =>
    serve(filesOf(folder, ISOLATION), async (url) => {
      const { width, colorScheme } = view;
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
      try {
        const page = await context.newPage();
        await page.goto(`${url}${name}?grid=64&workers=3&stop=40&rate=1000`);
        await still(page, name);
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
        expect(await page.evaluate(CLIPPED)).toEqual([]);
        const boxes: [string, Box][] = [];
        for (const part of PARTS[name]) boxes.push([part, (await page.locator(part).first().boundingBox()) as Box]);
        lieApart(boxes);
        const places: Facts[string] = Object.fromEntries(
          boxes.map(([part, box]) => [part, [Math.round(box.x), Math.round(box.width)] as const]),
        );
        const key = `${name} ${width}`;
        if (isWriting) written[key] = places;
        else {
          expect(Object.keys(places)).toEqual(Object.keys(known[key] ?? {}));
          for (const [part, [x, wide]] of Object.entries(places)) {
            const [knownX, knownWidth] = known[key]?.[part] ?? [0, 0];
            expect(Math.abs(x - knownX), `${part} begins at ${x}, not at ${knownX}`).toBeLessThanOrEqual(TOLERANCE);
            expect(
              Math.abs(wide - knownWidth),
              `${part} has a width of ${wide}, not ${knownWidth}`,
            ).toBeLessThanOrEqual(TOLERANCE);
          }
        }
        // The paper is dark where the text is light.
        const shade = await page.evaluate<number>(
          "Number.parseInt(getComputedStyle(document.body).backgroundColor.slice(4))",
        );
        expect(shade < 128).toBe(colorScheme === "dark");
        if (PICTURES !== undefined) {
          const path = join(PICTURES, `layout-${name.replace(".html", "")}-${width}-${colorScheme}.png`);
          await page.screenshot({ path, fullPage: true });
        }
      } finally {
        await context.close();
      }
    }),
  );
});

/** Parts lie below each other or side by side, unless one is within the other. */
function lieApart(boxes: readonly [string, Box][]): void {
  for (const [at, [name, one]] of boxes.entries()) {
    for (const [other, box] of boxes.slice(at + 1)) {
      const isWithin =
        box.x >= one.x - 1 &&
        box.x + box.width <= one.x + one.width + 1 &&
        box.y >= one.y - 1 &&
        box.y + box.height <= one.y + one.height + 1;
      const isApart = box.y >= one.y + one.height - 1 || box.x >= one.x + one.width - 1;
      expect(isWithin || isApart, `${other} lies on ${name}`).toBe(true);
    }
  }
}
