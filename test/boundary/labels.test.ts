// Labels of the output of tasks: whole lines, however the text is cut, and the colors of a terminal.
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { type Labels, labelLines } from "../../src/launch/labels.js";

/** What comes out of pieces that a task writes. */
async function labeled(task: number, labels: Labels, ...pieces: readonly (string | Uint8Array)[]): Promise<string> {
  const [from, to] = [new PassThrough(), new PassThrough()];
  labelLines(task, labels, from, to);
  for (const piece of pieces) from.write(piece);
  from.end(() => setImmediate(() => to.end()));
  return await text(to);
}

it.each([
  [0, "\u001b[36m[0]\u001b[0m a\n"],
  [1, "\u001b[33m[1]\u001b[0m a\n"],
  [9, "\u001b[94m[9]\u001b[0m a\n"],
  [10, "\u001b[36m[10]\u001b[0m a\n"],
])("task %d has a color of its own, of ten", async (task, line) => {
  expect(await labeled(task, "color", "a\n")).toBe(line);
});

it.each([
  [["a\nb\n"], "[3] a\n[3] b\n"],
  [["a", "b\nc"], "[3] ab\n[3] c\n"],
  [["\n\n"], "[3] \n[3] \n"],
  [[], ""],
  [["x".repeat(65_536), "y", "z"], `[3] ${"x".repeat(65_536)}y\n[3] z\n`],
  [[Uint8Array.of(0xc3), Uint8Array.of(0xa4, 10)], "[3] \u00e4\n"],
])("pieces %#: each line has one label", async (pieces, lines) => {
  expect(await labeled(3, "plain", ...pieces)).toBe(lines);
});
