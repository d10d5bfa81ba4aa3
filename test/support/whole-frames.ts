// What pipes of tests have in common: each takes a frame as a whole, with bytes of its own.
import type { Endpoint } from "../../src/core/endpoint.js";
import { type FillRecords, FRAME_BYTES, type Frame } from "../../src/transport/net/frames.js";

export abstract class WholeFrames {
  abstract send(from: Endpoint, to: Endpoint, frame: Frame): void;

  recordsMax(): number {
    return FRAME_BYTES;
  }

  sendRecords(from: Endpoint, to: Endpoint, length: number, fill: FillRecords): void {
    const bytes = new Uint8Array(length);
    fill({ words: new Int32Array(bytes.buffer), bytes }, 0);
    this.send(from, to, { records: bytes });
  }

  flush(): void {}
  leave(): void {}
}

/** A frame with bytes of its own. */
export function copyOfFrame(frame: Frame): Frame {
  if ("records" in frame) return { records: frame.records.slice() };
  return "data" in frame ? { ...frame, data: frame.data?.slice() } : frame;
}
