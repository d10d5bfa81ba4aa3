// Sends task 0 how many modules this thread has compiled until it can exchange messages.
import { attach } from "pamir";

let compiled = 0;
const { Module } = WebAssembly;
WebAssembly.Module = class extends Module {
  constructor(/** @type {[BufferSource]} */ ...given) {
    super(...given);
    compiled++;
  }
};
const client = await attach();
const context = client.createContext();
context.sendImmediate(client.endpoint(0), 1, null, Uint8Array.of(compiled));
for (;;) await context.progress();
