// The index, docs/README.md, and the README: a newcomer's questions have a line there, by the words that one looks for, and what
// the line leads to says something of it.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { slugOf } from "../../scripts/anchors.mjs";

/** @param words a line of the index must have; the sections that it leads to have `says` */
const QUESTIONS = [
  { question: "how to send an object", words: /send an object/i, says: /Map.*Set|structuredClone/ },
  { question: "how to stop", words: /\bstop\b/i, says: /signal.*timeout|SIGTERM/ },
  { question: "how many workers", words: /how many workers/i, says: /concurrency/ },
  { question: "memory limits", words: /\b(limit|bound)\b.*(memory| it)/i, says: /resourceLimits|heapBytes/ },
  { question: "what happens at a crash", words: /crash/i, says: /PAMIR_SHUTDOWN/ },
  {
    question: "what idling costs",
    words: /\bidl(e|ing)\b.*cost|cost.*\bidl(e|ing)\b|idling costs/i,
    says: /processor time|sleeps/,
  },
  { question: "how to debug a hang", words: /\bhang\b/i, says: /pamir top/ },
  { question: "Comlink beside it", words: /Comlink/, says: /Comlink\.wrap/ },
  { question: "piscina beside it", words: /piscina/, says: /new Piscina/ },
  { question: "the bundle's size", words: /bundle/i, says: /gzipped/ },
  { question: "Safari", words: /Safari/, says: /SharedArrayBuffer|Safari itself/ },
  { question: "Electron", words: /Electron/, says: /utility process/ },
  { question: "Vite", words: /Vite/, says: /format: "es"/ },
  { question: "Next.js", words: /Next\.js/, says: /serverExternalPackages|route handlers/ },
];

/** What stands behind a link: the section of its anchor, with the parts below it; without one, the page. */
function target(from: string, link: string): string {
  const [path = "", anchor] = link.split("#");
  const page = readFileSync(join(dirname(from), path), "utf8");
  if (anchor === undefined) return page;
  const parts = page.split(/^(?=#+ )/m).map((text) => {
    const [, marks = "", heading = ""] = /^(#+) (.*)/.exec(text) ?? [];
    return { text, level: marks.length, slug: slugOf(heading) };
  });
  const first = parts.findIndex((part) => part.slug === anchor);
  if (first < 0) return expect.fail(`${from}: no heading ${link}`);
  const level = parts[first]?.level ?? 0;
  const next = parts.findIndex((part, i) => i > first && part.level > 0 && part.level <= level);
  return parts
    .slice(first, next < 0 ? parts.length : next)
    .map(({ text }) => text)
    .join("");
}

describe.each(["docs/README.md", "README.md"])("%s", (index) => {
  const rows = readFileSync(index, "utf8")
    .split("\n")
    .filter((line) => /^\| .*\]\(/.test(line));

  it.each(QUESTIONS)("$question", ({ words, says }) => {
    const found = rows.filter((row) => words.test(row));
    expect(found).not.toEqual([]);
    const links = found.flatMap((row) => [...row.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link as string));
    expect(links.filter((link) => says.test(target(index, link)))).not.toEqual([]);
  });
});
