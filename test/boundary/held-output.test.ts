// The output of a task on another host, behind a reader that does not read: both ends keep little, and nothing is lost.
import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { HeldOutput, RemoteOutput } from "../../src/cli/run/hosts/held.js";

const PIECE = Buffer.alloc(64 * 1024, 7);
const PIECES = 3200; // 200 MiB
/** Of a stream that is not taken: as in src/cli/run/hosts/held.ts, and one chunk of a pipe. */
const MOST = 256 * 1024 + PIECE.length;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it("200 MiB to a reader that pauses: what is under way stays within the window, and all of it comes", async () => {
  const task = new PassThrough({ highWaterMark: PIECE.length });
  let [sent, taken, read, most, written] = [0, 0, 0, 0, 0];
  const held = new HeldOutput(task, (bytes) => {
    sent += bytes.length;
    remote.add(bytes);
    held.flow(true);
    most = Math.max(most, sent - taken);
  });
  const remote = new RemoteOutput((bytes) => {
    taken += bytes;
    held.give(bytes);
    held.flow(true);
  });
  const fill = (): void => {
    while (written < PIECES && task.write(PIECE)) written++;
    if (written < PIECES) {
      written++;
      task.once("drain", fill);
    } else task.end();
  };
  fill();
  for (let turn = 0; turn < 100; turn++) await nextTurn();
  // Nothing has been read so far.
  const before = sent;
  expect(before).toBeLessThanOrEqual(MOST);
  for (let turn = 0; turn < 100; turn++) await nextTurn();
  expect(sent).toBe(before);
  task.on("end", () => remote.complete());
  for await (const bytes of remote) {
    read += bytes.length;
    if (read % (16 * PIECE.length) === 0) await nextTurn();
  }
  expect(read).toBe(PIECES * PIECE.length);
  expect(most).toBeLessThanOrEqual(MOST);
});
