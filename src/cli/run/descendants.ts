// Processes that tasks have started, where the tasks are threads: they lead no process group, so no signal to a group reaches
// them. Only on Linux, by /proc.
import { readdirSync, readFileSync } from "node:fs";
import { pause } from "../../support/timers.js";

/** Milliseconds between two looks whether they have ended. */
const LOOK_MS = 20;

/** A process, and when it began: its number may become another one's. */
interface Found {
  readonly pid: number;
  readonly parent: number;
  readonly started: string;
}

/** Undefined: it has ended, or is a zombie that nothing awaits. */
function find(pid: number): Found | undefined {
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
  readonly #isFar: boolean;
  #found: readonly Found[] = [];

  /** @param isFar whether the processes that this one has started itself have the tasks as threads, and so are none of these */
  constructor(isFar: boolean) {
    this.#isFar = isFar;
  }

  /** Looks for the processes that this one has started, and those have. What was found before is known on. */
  find(): void {
    let all: Found[];
    try {
      const numbers = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
      all = numbers.flatMap((name) => find(Number(name)) ?? []);
    } catch {
      // Another system.
      return;
    }
    const family = new Set([process.pid]);
    const found: Found[] = [];
    for (let size = 0; size < family.size; ) {
      size = family.size;
      for (const one of all) {
        if (family.has(one.pid) || !family.has(one.parent)) continue;
        family.add(one.pid);
        if (!this.#isFar || one.parent !== process.pid) found.push(one);
      }
    }
    // A process whose parent has ended is found no more.
    const before = this.#found.filter(({ pid }) => !found.some((one) => one.pid === pid));
    this.#found = [...before, ...found];
  }

  /** Sends a signal to those that were found and go on. */
  kill(signal: NodeJS.Signals): void {
    for (const { pid } of this.#going) {
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
    while (this.#going.length > 0 && performance.now() < until) await pause(LOOK_MS);
  }

  get #going(): readonly Found[] {
    return this.#found.filter(({ pid, started }) => find(pid)?.started === started);
  }
}
