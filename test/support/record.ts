// A frame with one record, as egress of another node makes it.
import { putRecord, recordBytes } from "../../src/transport/net/records.js";

export function frameWith(kind: number, meta: number, body: Uint8Array): Uint8Array {
  const words = new Int32Array(new SharedArrayBuffer(4 * Math.ceil(body.length / 4)));
  const bytes = new Uint8Array(words.buffer);
  bytes.set(body);
  const frame = new Uint8Array(recordBytes(body.length));
  // What the frame's buffer held before.
  frame.fill(0xee);
  putRecord(new DataView(frame.buffer), 0, kind, meta, { words, bytes }, 0, body.length);
  return frame;
}
