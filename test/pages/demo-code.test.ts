// The code that the demo's pages show: ten to twenty lines of its sources for each part, with a link to a document.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { slugOf } from "../../scripts/anchors.mjs";
import { buildDemo } from "../../scripts/demo.mjs";
import { CODE, codeOf } from "../../scripts/demo-pages.mjs";

const folder = mkdtempSync(join(tmpdir(), "pamir-code-"));
beforeAll(() => buildDemo(folder));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const pages = () => readdirSync(folder).filter((name) => name.endsWith(".html"));
const htmlOf = (name: string) => readFileSync(join(folder, name), "utf8");

it.each(Object.keys(CODE))("the code of %s has ten to twenty lines", (name) => {
  const lines = codeOf(name)
    .split("\n")
    .filter((line) => line.trim() !== "");
  expect(lines.length).toBeGreaterThanOrEqual(10);
  expect(lines.length).toBeLessThanOrEqual(20);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(120);
});

it("each is on a page, beside a link to a document", () => {
  const shown = pages().flatMap((name) => {
    const parts = htmlOf(name).split('<div class="behind">').slice(1);
    return parts.map((part) => {
      const [, code = "", text = ""] = /<code data-code="(\w+)">([^<]+)/.exec(part) ?? [];
      expect(part.split("<pre>")[0]).toMatch(/<a href="docs\/[\w./-]+\.md#[\w-]+">/);
      expect(text.replaceAll("&lt;", "<").replaceAll("&amp;", "&")).toBe(codeOf(code));
      return code;
    });
  });
  expect(shown.toSorted()).toEqual(Object.keys(CODE).toSorted());
});

it("every link leads to a file of the folder, and to a section of it", () => {
  for (const page of pages()) {
    for (const [, path = "", anchor] of htmlOf(page).matchAll(/(?:href|src)="(?!\w+:)([^"#]+)(?:#([^"]+))?"/g)) {
      const text = readFileSync(join(folder, path === "./" ? "index.html" : path), "utf8");
      if (anchor === undefined) continue;
      const anchors = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => slugOf(heading));
      expect(anchors, `${page}: ${path}`).toContain(anchor);
    }
  }
});
