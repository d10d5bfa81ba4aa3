// The output of a process that shares it with other processes: each write to a pipe brings whole lines, in as many bytes as
// the system keeps together. So the lines of several processes do not mix while the reader is slow.
import type { Writable } from "node:stream";
import { nodeModule } from "../../support/host.js";

/**
 * Bytes that a write to a pipe brings in one piece: PIPE_BUF of Linux. A longer line may be mixed with lines of other
 * processes.
 */
const WHOLE_MAX = 4096;
const LINE_END = 10;

/**
 * @returns a stream for whole lines, which writes them to another stream piece by piece: the next piece once the last piece is
 * out
 */
export function wholeLines(to: Writable): Writable {
  const { Writable: Stream } = nodeModule("stream") as typeof import("node:stream");
  return new Stream({
    write(lines: Buffer, _, onWritten) {
      const next = (from: number): void => {
        const end = pieceEnd(lines, from);
        if (from === end) onWritten();
        else to.write(lines.subarray(from, end), () => next(end));
      };
      next(0);
    },
  });
}

/** Makes the output of this process write whole lines. */
export function sharedOutput(): { readonly stdout: Writable; readonly stderr: Writable } {
  return { stdout: wholeLines(process.stdout), stderr: wholeLines(process.stderr) };
}

/**
 * Where the piece that begins at an offset ends: after as many whole lines as fit, or after one line if that line does not fit.
 */
function pieceEnd(lines: Buffer, from: number): number {
  const most = from + WHOLE_MAX;
  if (most >= lines.length) return lines.length;
  const end = lines.lastIndexOf(LINE_END, most - 1) + 1;
  if (end > from) return end;
  return lines.indexOf(LINE_END, most) + 1 || lines.length;
}
