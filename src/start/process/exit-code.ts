// Exit codes as in a shell.
import { nodeModule } from "../../support/host.js";

/** That of a program which writes to a pipe without a reader. */
export const EXIT_PIPE = 141;

/** The exit code of a task whose process did not end well. @param signal by which the process was killed */
export function codeBy(code: number | null, signal: string | null): number {
  const { signals } = (nodeModule("os") as typeof import("node:os")).constants;
  // Another system's signal may be unknown here.
  return code || (signal === null ? 1 : 128 + (signals[signal as keyof typeof signals] ?? 0));
}

/** Milliseconds that processes of tasks have to end, once they are asked to. */
export const GRACE_MS = 5000;

/** The meaning of Node's exit code 13, as a part of a sentence. */
export function unsettledText(code: number | null): string {
  return code === 13 ? ": a top-level await of its program can't settle any more" : "";
}
