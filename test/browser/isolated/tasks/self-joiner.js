// @ts-check
// A worker of somebody else, which joins a job by its own messages, as often as it is told to.
import { attach } from "pamir";
import { ASK, LEAVE } from "./joiner.js";

self.addEventListener("message", ({ data }) => {
  if (data === "join") void join();
});

async function join() {
  const client = await attach(/** @type {import("pamir").AttachPort} */ (/** @type {unknown} */ (self)));
  const context = client.createContext();
  context.dispatch(ASK, () => Uint8Array.of(client.task, client.size));
  context.dispatch(LEAVE, () => client.close());
  try {
    while (!client.closed) await context.progress();
  } catch {
    // It was closed from outside.
  }
  self.postMessage("left");
}
