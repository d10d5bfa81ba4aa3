// Whether processes that are asleep use no time.
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";

/** Nanoseconds of a core that the threads of processes have used, and how often they have fallen asleep. */
function usedBy(pids: readonly number[]): { time: number; wakes: number } {
  const used = { time: 0, wakes: 0 };
  for (const pid of pids) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const of = (file: string): string => readFileSync(`/proc/${pid}/task/${thread}/${file}`, "utf8");
      try {
        used.time += Number(of("schedstat").split(" ")[0]);
        used.wakes += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(of("status"))?.[1]);
      } catch {
        // It has ended meanwhile.
      }
    }
  }
  return used;
}

/** Checks that eight processes take less than 20 ms of a core in 10 s, and wake less than once a second for each task. */
export async function expectIdle(pids: readonly number[], tasks = pids.length): Promise<void> {
  const isLow = ([share, wakes]: readonly [number, number]) => share < 0.002 && wakes < 1;
  // Other programs may disturb a window, and what starting has left to do: the best of five.
  const windows: (readonly [share: number, wakes: number])[] = [];
  while (windows.length < 5 && !windows.some(isLow)) {
    const [before, start] = [usedBy(pids), performance.now()];
    await sleep(2500);
    const [used, milliseconds] = [usedBy(pids), performance.now() - start];
    windows.push([
      (used.time - before.time) / 1e6 / milliseconds,
      ((used.wakes - before.wakes) * 1000) / milliseconds / tasks,
    ]);
  }
  expect(windows.filter(isLow).length, `shares and wakes: ${windows}`).toBe(1);
}
