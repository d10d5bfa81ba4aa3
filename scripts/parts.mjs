// Runs the parts of `npm test`: each of them, whatever has failed before. A part is a command of its own.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { stripVTControlCharacters } from "node:util";

/**
 * @typedef {object} Part
 * @property {string} name
 * @property {readonly [string, ...string[]]} command a program and its arguments
 * @property {Readonly<Record<string, string>>} [env] variables, besides those of this process
 * @property {string} [report] where it writes a report of Vitest in JSON
 *
 * @typedef {object} Outcome
 * @property {string} name
 * @property {number} status its exit code; 1 where a signal has ended it, or where it could not be started
 * @property {number} seconds
 * @property {readonly string[]} notRun what it has said after `not run: `
 * @property {Counts} [counts] of its report, if there is one
 *
 * @typedef {{ readonly passed: number, readonly failed: number, readonly skipped: number }} Counts
 */

/** What parts write, in the order of the parts: a later one's lines wait until the earlier ones have ended. */
class InOrder {
  /** @type {string[][]} */
  #waiting = [];
  #turn = 0;
  /** @type {Set<number>} */
  #ended = new Set();
  #write;

  /** @param {(text: string) => void} write */
  constructor(write) {
    this.#write = write;
  }

  /** @param {number} place of a part @param {string} line */
  add(place, line) {
    if (place === this.#turn) return this.#write(`${line}\n`);
    this.#waiting[place] ??= [];
    this.#waiting[place].push(line);
  }

  /** @param {number} place of a part that has ended */
  end(place) {
    this.#ended.add(place);
    while (this.#ended.has(this.#turn)) {
      this.#turn++;
      for (const line of this.#waiting[this.#turn] ?? []) this.#write(`${line}\n`);
      delete this.#waiting[this.#turn];
    }
  }
}

/** @param {string | undefined} file @returns {Counts | undefined} */
function countsOf(file) {
  if (file === undefined) return undefined;
  try {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(file, "utf8"));
    return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests };
  } catch {
    return undefined;
  }
}

/**
 * Runs one part to its end.
 * @param {Part} part @param {AbortSignal} ending ends it @param {(line: string) => void} tell
 * @returns {Promise<Outcome>}
 */
async function runPart({ name, command: [program, ...args], env, report }, ending, tell) {
  const began = performance.now();
  // In a group of its own, which ends with what the part has started.
  const detached = process.platform !== "win32";
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env }, detached });
  const end = () => {
    if (child.pid === undefined) return;
    try {
      process.kill(detached ? -child.pid : child.pid, "SIGTERM");
    } catch {
      // All of it has ended.
    }
  };
  ending.addEventListener("abort", end);
  /** @type {Set<string>} */
  const notRun = new Set();
  const read = [child.stdout, child.stderr].map(
    (input) =>
      new Promise((resolve) => {
        const lines = createInterface({ input });
        lines.on("line", (line) => {
          const [, what] = /^not run: (.+)/.exec(stripVTControlCharacters(line)) ?? [];
          if (what !== undefined) notRun.add(what);
          tell(line);
        });
        lines.on("close", resolve);
      }),
  );
  const status = await new Promise((resolve) => {
    child.on("error", (error) => {
      tell(`${name}: ${error.message}`);
      resolve(1);
    });
    child.on("exit", (code) => resolve(code ?? 1));
  });
  await Promise.all(read);
  ending.removeEventListener("abort", end);
  const seconds = Math.round((performance.now() - began) / 1000);
  const counts = countsOf(report);
  return { name, status, seconds, notRun: [...notRun], ...(counts === undefined ? {} : { counts }) };
}

/**
 * Runs all parts, in stages one after the other. The lanes of a stage run beside each other, the parts of a lane in turn.
 * What the parts write comes in the order in which they are given. SIGTERM or SIGINT ends those that run; the others are not run.
 * @param {readonly (readonly (readonly Part[])[])[]} stages @param {(text: string) => void} write
 * @returns {Promise<Outcome[]>} in the order of the parts
 */
export async function runParts(stages, write) {
  const order = new InOrder(write);
  const places = new Map(stages.flat(2).map((part, place) => [part, place]));
  /** @type {Outcome[]} */
  const outcomes = [];
  const ending = new AbortController();
  const end = () => ending.abort();
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, end);
  for (const lanes of stages) {
    await Promise.all(
      lanes.map(async (lane) => {
        for (const part of lane) {
          const place = places.get(part) ?? 0;
          outcomes[place] = ending.signal.aborted
            ? { name: part.name, status: 1, seconds: 0, notRun: [`${part.name}, since a signal came`] }
            : await runPart(part, ending.signal, (line) => order.add(place, line));
          order.end(place);
          write(`${described(outcomes[place])}\n`);
        }
      }),
    );
  }
  for (const signal of ["SIGTERM", "SIGINT"]) process.off(signal, end);
  return outcomes;
}

/** @param {Outcome} outcome */
function described({ name, status, seconds, counts }) {
  const tests =
    counts === undefined ? "" : `${counts.passed} tests passed, ${counts.failed} failed, ${counts.skipped} skipped, `;
  return `${name} (${tests}exit code ${status}, ${seconds} s)`;
}

/** The last line of `npm test`. @param {readonly Outcome[]} outcomes */
export function summaryOf(outcomes) {
  /** @param {boolean} isGood */
  const listed = (isGood) =>
    outcomes
      .filter(({ status }) => (status === 0) === isGood)
      .map(described)
      .join(", ");
  const notRun = [...new Set(outcomes.flatMap((one) => one.notRun))].join("; ");
  return `passed: ${listed(true) || "nothing"}; failed: ${listed(false) || "nothing"}; not run: ${notRun || "nothing"}`;
}
