// Which of the known names an unknown one may have been meant to be.
import { expect, it } from "vitest";
import { nearestOf, noSuchKey } from "../../src/support/node/nearest.js";

const LAUNCH = ["tasks", "maxTasks", "kernel", "heapBytes", "laneBytes", "processes", "timeout", "to", "id"];

it.each<[key: string, near: string | undefined]>([
  ["heapByte", "heapBytes"],
  ["heapbytes", "heapBytes"],
  ["HEAPBYTES", "heapBytes"],
  ["heap_bytes", "heapBytes"],
  ["lanebyte", "laneBytes"],
  ["task", "tasks"],
  ["taks", "tasks"],
  ["max", "maxTasks"],
  ["timeoutMs", "timeout"],
  ["tiemout", "timeout"],
  ["process", "processes"],
  ["heap", "heapBytes"],
  ["too", "to"],
  ["idle", undefined],
  ["x", undefined],
  ["", undefined],
  ["constructor", undefined],
  ["bytes", undefined],
  [`heapBytes${"s".repeat(100)}`, undefined],
])("%s: %s", (key, near) => {
  expect(nearestOf(key, LAUNCH)).toBe(near);
});

it("the text has the key, the nearest name and all names", () => {
  expect(noSuchKey("idd", '"idd"', ["id", "codec"])).toBe('there is no "idd": did you mean id? There are id, codec');
  expect(noSuchKey("x", '"x"', ["id", "codec"])).toBe('there is no "x", but id, codec');
});
