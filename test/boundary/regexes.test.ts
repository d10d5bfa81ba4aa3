// Regular expressions meet text of other processes: none takes time that grows with the square of its length.
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** Literals, where no division can stand. */
const LITERALS = /(?<=[(,=:[!&|?{};]\s*)\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*/g;
const COMMENTS = /^\s*(\/\/|\/?\*).*$/gm;

/** Each literal of the sources, with one of its files. */
const literals = new Map<string, { readonly path: string; readonly regex: RegExp }>();
for (const path of readdirSync("src", { recursive: true, encoding: "utf8" })) {
  if (!path.endsWith(".ts") || path.startsWith("generated")) continue;
  for (const [literal] of readFileSync(`src/${path}`, "utf8").replace(COMMENTS, "").matchAll(LITERALS)) {
    const regex = compiled(literal);
    if (regex !== undefined) literals.set(literal, { path, regex });
  }
}

const BEGINS = ["", "a", "[", "ws://", "udp:"];
const UNITS = ["a", "0", " ", "-", ".", ",", ":", "/", "_", "[", "\n", "a ", "0,", "a=", "1."];
const ENDS = ["", "!"];
const TEXTS = BEGINS.flatMap((begin) => UNITS.flatMap((unit) => ENDS.map((end) => ({ begin, unit, end }))));

/** undefined: text between two slashes that is no expression. */
function compiled(literal: string): RegExp | undefined {
  const end = literal.lastIndexOf("/");
  try {
    return new RegExp(literal.slice(1, end), literal.slice(end + 1).replace(/[gy]/g, ""));
  } catch {
    return undefined;
  }
}

/** The least of nine times of a match: others may have the core meanwhile. */
function timeOf(regex: RegExp, { begin, unit, end }: (typeof TEXTS)[number], length: number): number {
  const text = begin + unit.repeat(length / unit.length) + end;
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 9; i++) {
    const start = performance.now();
    regex.exec(text);
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

/** Texts of which 8 times as much takes more than 24 times as long: 64 times, where time grows with the square. */
function slowTexts(regex: RegExp): string[] {
  return TEXTS.filter((text) => {
    // What is below the clock's steps would be noise.
    const first = timeOf(regex, text, 1000) + 0.02;
    let last = first;
    for (let length = 2000; length <= 8000; length *= 2) {
      const time = timeOf(regex, text, length);
      // Most end here.
      if (time < 1.5 * last) return false;
      last = time;
    }
    return last > 24 * first;
  }).map((text) => JSON.stringify(text));
}

it("finds the literals of the sources", () => {
  expect(literals.size).toBeGreaterThan(50);
});

/** Times that are measured while others have the core say too much or too little. */
const ATTEMPTS = 10;

it("finds one that is slow", () => {
  let isFound = false;
  for (let i = 0; i < ATTEMPTS && !isFound; i++)
    isFound = slowTexts(/\[(\d+)[^\]]*\]/).includes('{"begin":"[","unit":"0","end":""}');
  expect(isFound).toBe(true);
});

it("none of the sources is slow", () => {
  const slow = [...literals].flatMap(([literal, { path, regex }]) => {
    // What grows with the square does so each time.
    let texts = slowTexts(regex);
    for (let i = 1; i < ATTEMPTS && texts.length > 0; i++) {
      const again = slowTexts(regex);
      texts = texts.filter((text) => again.includes(text));
    }
    return texts.map((text) => [path, literal, text]);
  });
  expect(slow).toEqual([]);
});
