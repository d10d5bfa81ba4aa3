// Passes its input on, a little each millisecond.
import { readSync, writeSync } from "node:fs";

const bytes = new Uint8Array(5000);
const never = new Int32Array(new SharedArrayBuffer(4));
for (let count = 1; count > 0; ) {
  Atomics.wait(never, 0, 0, 1);
  count = readSync(0, bytes);
  writeSync(1, bytes, 0, count);
}
