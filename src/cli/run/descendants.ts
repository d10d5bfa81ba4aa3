// Processes that tasks have started, where the tasks are threads: they lead no process group, so no signal to a group reaches
// them. Only on Linux, by /proc.
import { readdirSync, readFileSync } from "node:fs";
import { pause } from "../../support/timers.js";

/** Milliseconds between two looks whether they have ended. */
const LOOK_MS = 20;

/** A process, and when it began: its number may become that of another one. */
interface Started {
  readonly pid: number;
  readonly parent: number;
  readonly started: string;
}

/** A process that runs; undefined: it has ended, also if it is a zombie. */
function processOf(pid: number): Started | undefined {
  try {
    // The name, in parentheses, may have spaces and parentheses.
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    if (fields[0] === "Z") return undefined;
    return { pid, parent: Number(fields[1]), started: fields[19] as string };
  } catch {
    return undefined;
  }
}

export class Descendants {
  readonly #hasTasksHere: boolean;
  #found: readonly Started[] = [];

  /** @param hasTasksHere whether the tasks are threads of this process; else they are threads of its children */
  constructor(hasTasksHere: boolean) {
    this.#hasTasksHere = hasTasksHere;
  }

  /** Looks for descendants of the processes that have the tasks. Earlier finds stay: their parents may have ended. */
  find(): void {
    let all: Started[];
    try {
      const numbers = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
      all = numbers.flatMap((name) => processOf(Number(name)) ?? []);
    } catch {
      // Another system.
      return;
    }
    const family = new Set([process.pid]);
    const found: Started[] = [];
    for (let size = 0; size < family.size; ) {
      size = family.size;
      for (const one of all) {
        if (family.has(one.pid) || !family.has(one.parent)) continue;
        family.add(one.pid);
        if (this.#hasTasksHere || one.parent !== process.pid) found.push(one);
      }
    }
    const before = this.#found.filter(({ pid }) => !found.some((one) => one.pid === pid));
    this.#found = [...before, ...found];
  }

  /** Sends a signal to the descendants that were found and still run. */
  kill(signal: NodeJS.Signals): void {
    for (const { pid } of this.#running) {
      try {
        process.kill(pid, signal);
      } catch {
        // It has just ended, or is another user's.
      }
    }
  }

  /** Resolves once they have ended, or `time` milliseconds later. */
  async end(time: number): Promise<void> {
    const until = performance.now() + time;
    while (this.#running.length > 0 && performance.now() < until) await pause(LOOK_MS);
  }

  get #running(): readonly Started[] {
    return this.#found.filter(({ pid, started }) => processOf(pid)?.started === started);
  }
}
