// @ts-check
// The same without pamir: busy with postMessage, at most 64 messages ahead; parked in Atomics.wait; asleep in its loop.
import { parentPort, workerData } from "node:worker_threads";
import { END, end, READY, TAKEN } from "./ends.js";

const { how, state, shared } = workerData;
const words = new Int32Array(shared);
const port = /** @type {import("node:worker_threads").MessagePort} */ (parentPort);
// What it is asked it does not answer before it ends.
port.on("message", (message) => {
  if (message === "end") end(how, shared);
});
Atomics.store(words, READY, 1);
Atomics.notify(words, READY);
if (state === "busy") {
  for (let sent = 0; Atomics.load(words, END) === 0; ) {
    if (sent - Atomics.load(words, TAKEN) >= 64) continue;
    port.postMessage("traffic");
    sent++;
  }
  end(how, shared);
}
if (state === "parked") {
  Atomics.wait(words, END, 0);
  end(how, shared);
}
