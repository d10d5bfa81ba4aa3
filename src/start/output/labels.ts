// Passes on the output of tasks, at the pace of its reader. With labels, each line begins with the number of its task, so that
// lines of several tasks can be told apart.
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { nextTurn, nodeModule } from "../../support/host.js";

export { hasColors } from "../../support/host.js";

/** How lines are labeled, of each stream: with the task's number, or with that in a color of the task. */
export type Labels = Readonly<Record<"stdout" | "stderr", boolean>>;

/** Foreground colors of a terminal, without black, white and red. */
const COLORS = [36, 33, 32, 35, 34, 96, 93, 92, 95, 94] as const;
/** Characters of a line without an end, after which it is written as one. */
const LINE_MAX = 65_536;
/**
 * Most characters that a process leaves in its pipe and in the stream that reads the pipe: Linux keeps some 200 KiB in a pipe.
 */
export const LEFT_MAX = 1024 ** 2;
/** Milliseconds in which a reader may take the last output of a job that is ended. */
export const OUTPUT_MS = 2000;
/** Turns in which nothing comes, after which a pipe counts as empty. */
const EMPTY_TURNS = 8;

/**
 * The standard output and error of a task's process. A terminal is inherited, as by any program. Otherwise this process passes
 * the output on, and meets the error of an output without a reader. A terminal always has a reader.
 */
export function outputsOf(hasLabels: boolean): ("inherit" | "pipe")[] {
  const { isatty } = nodeModule("tty") as typeof import("node:tty");
  return [1, 2].map((descriptor) => (!hasLabels && isatty(descriptor) ? "inherit" : "pipe"));
}

/** By destination: the streams that are paused until the destination takes more. */
const paused = new WeakMap<Writable, Set<Readable>>();
/** By stream: how many more characters are read from it, whether or not its destination takes them. */
const excused = new WeakMap<Readable, number>();

/** Copies a stream to a destination. While the destination takes no more, the stream pauses. */
export function passOn(some: string | Uint8Array, from: Readable, to: Writable): void {
  if (to.write(some) || to.destroyed) return;
  const more = (excused.get(from) ?? 0) - some.length;
  if (more >= 0) {
    excused.set(from, more);
    return;
  }
  from.pause();
  pausedBy(to).add(from);
}

/**
 * The process behind this output has ended: the rest of its output is read at once, so that its end is reported even if nothing
 * reads the destination. Other processes that still write to the stream are held back again.
 */
export function takeRest(from: Readable, most: number = LEFT_MAX): void {
  excused.set(from, most);
  from.resume();
}

/**
 * Resolves once the output that a process left in these streams is read, even if other processes hold the streams, too. If
 * those processes write on, LEFT_MAX characters are read. Afterwards the streams don't keep this process running.
 */
export async function drained(all: readonly Readable[]): Promise<void> {
  let came = 0;
  const count = (some: string | Uint8Array): void => {
    came += some.length;
  };
  for (const from of all) from.on("data", count);
  // The first turn is the rest of the turn that reported the end of the process, in which nothing is read.
  for (let empty = 0; empty < EMPTY_TURNS && came < LEFT_MAX; ) {
    const before = came;
    for (const from of all) from.resume();
    await nextTurn();
    empty = came === before ? empty + 1 : 0;
  }
  for (const from of all) {
    from.off("data", count);
    (from as Partial<Socket>).unref?.();
  }
}

function pausedBy(to: Writable): Set<Readable> {
  const known = paused.get(to);
  if (known !== undefined) return known;
  const waiting = new Set<Readable>();
  const resume = (): void => {
    const all = [...waiting];
    waiting.clear();
    for (const from of all) from.resume();
  };
  // One listener for all streams: Node warns of more than ten. A closed destination drops all further output.
  to.on("drain", resume).on("close", resume);
  paused.set(to, waiting);
  return waiting;
}

function labelOf(task: number, hasColor: boolean): string {
  const color = COLORS[task % COLORS.length] as number;
  return hasColor ? `\u001b[${color}m[${task}]\u001b[0m ` : `[${task}] `;
}

/**
 * Copies a task's stream to a destination, line by line. A last line without an end gets one.
 * @returns a function that ends a line which has come in part
 */
export function labelLines(task: number, hasColor: boolean, from: Readable, to: Writable): () => void {
  const label = labelOf(task, hasColor);
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() as string;
    if (rest.length > LINE_MAX) {
      lines.push(rest);
      rest = "";
    }
    // One write for all lines, so that no other process writes in between.
    if (lines.length > 0) passOn(lines.map((line) => `${label}${line}\n`).join(""), from, to);
  });
  const endLine = (): void => {
    if (rest !== "") to.write(`${label}${rest}\n`);
    rest = "";
  };
  from.on("end", endLine);
  return endLine;
}
