// Tasks that do not attach: one line, at one time, about those that run.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { watchStart } from "../../src/start/tasks/late-start.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const WHY = "its module may not call attach(), may be loading, or may wait in a top-level await";
const SEVERAL = WHY.replace("its module", "their modules");

it.each([
  [[], undefined],
  [[2], `pamir: task 2 has not attached 10 s after the start: ${WHY}`],
  [[1, 3], `pamir: tasks 1, 3 have not attached 10 s after the start: ${SEVERAL}`],
  [
    Array.from({ length: 20 }, (_, task) => task),
    `pamir: tasks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4 more have not attached 10 s after the start: ${SEVERAL}`,
  ],
])("tells once of the tasks that have not attached by then, and run: %j", (absent: readonly number[], text) => {
  const tell = vi.fn();
  const tasks = Array.from({ length: 32 }, (_, task) => task);
  watchStart(tasks, (task) => absent.includes(task), tell);
  vi.advanceTimersByTime(9999);
  expect(tell).toHaveBeenCalledTimes(0);
  vi.advanceTimersByTime(60_000);
  expect(tell.mock.calls).toEqual(text === undefined ? [] : [[text]]);
});
