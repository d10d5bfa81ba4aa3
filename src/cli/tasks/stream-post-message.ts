// The receiver of `pamir stream` by postMessage: as tasks/stream.ts, with what Node has.
import { createHash } from "node:crypto";
import { parentPort } from "node:worker_threads";

let file = new Uint8Array(0);
let length = 0;

parentPort?.on("message", (message: number | string | Uint8Array) => {
  if (typeof message === "number") {
    file = new Uint8Array(message).fill(1);
    length = 0;
    parentPort?.postMessage("ready");
  } else if (message === "end") parentPort?.postMessage("done");
  else if (message === "digest")
    parentPort?.postMessage(createHash("sha256").update(file.subarray(0, length)).digest("hex"));
  else {
    file.set(message as Uint8Array, length);
    length += message.length;
  }
});
