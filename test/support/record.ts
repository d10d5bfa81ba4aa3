// Frames of records: one as egress of another node makes it, and what is in one, as ingress reads it.
import {
  type LaneRecord,
  NO_REST,
  putRecord,
  recordAt,
  recordBytes,
  restAfter,
  wordBehind,
} from "../../src/transport/net/records.js";

export function frameWith(kind: number, meta: number, body: Uint8Array): Uint8Array {
  const words = new Int32Array(new SharedArrayBuffer(4 * Math.ceil(body.length / 4)));
  const bytes = new Uint8Array(words.buffer);
  bytes.set(body);
  const frame = new Uint8Array(recordBytes(body.length));
  // What the frame's buffer held before.
  frame.fill(0xee);
  putRecord({ words: new Int32Array(frame.buffer), bytes: frame }, 0, kind, meta, { words, bytes }, 0, body.length);
  return frame;
}

/** The records of a frame. Undefined: they are no valid records. */
export function recordsIn(frame: Uint8Array): LaneRecord[] | undefined {
  const words = new Int32Array(frame.slice().buffer, 0, frame.length >>> 2);
  if (frame.length % 4 !== 0 || restAfter(words, NO_REST) === undefined) return undefined;
  const records: LaneRecord[] = [];
  for (let at = 0; at < words.length; at = wordBehind(words, at)) records.push(recordAt(words, at));
  return records;
}
