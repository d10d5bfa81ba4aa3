// What a visitor of the demo loads before anything is asked for: each file once, as a server sends it compressed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildDemo } from "../../scripts/demo.mjs";
import { filesOf, ISOLATION, onPage, openBrowser, serve } from "./support.js";

/** Bytes: the runtime with what it loads later, the tank, the strip, the card, and the sections' first looks. */
const WEIGHT_MAX = 200_000;

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "pamir-weight-"));
  await buildDemo(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it(`is at most ${WEIGHT_MAX} bytes, and none of it is for the walk through an allreduce`, async () => {
  const asked = new Set<string>();
  const answer = filesOf(folder, ISOLATION);
  const text = await serve(
    (request, response) => {
      asked.add(new URL(request.url ?? "/", "http://localhost").pathname);
      return answer(request, response);
    },
    async (url) =>
      onPage(await openBrowser(), `${url}?grid=64&workers=2`, async (page) => {
        await page.locator("#strip canvas").scrollIntoViewIfNeeded();
        await page.waitForFunction("tank.tank?.step > 20", undefined, { timeout: 60_000 });
        await page.waitForFunction("/task/.test(document.querySelector('#strip canvas').ariaLabel)", undefined, {
          timeout: 60_000,
        });
        return [...asked].map((path) => readFileSync(join(folder, path === "/" ? "index.html" : path)));
      }),
  );
  expect(text.length).toBeGreaterThan(5);
  const bytes = text.reduce((sum, file) => sum + gzipSync(file).length, 0);
  expect(bytes).toBeLessThanOrEqual(WEIGHT_MAX);
  expect([...asked].filter((path) => /tree-task|guest-worker|rank-task/.test(path))).toEqual([]);
});
