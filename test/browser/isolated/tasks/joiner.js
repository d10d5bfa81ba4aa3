// @ts-check
// A worker that the program started, which is given a port, and joins a job by it, as often as it gets one.
import { attach } from "pamir";

export const ASK = 1;
export const LEAVE = 2;

// The tests import this file too, for the ids.
if (typeof document === "undefined")
  globalThis.onmessage = ({ data }) => {
    if (data instanceof MessagePort) void join(data);
  };

/** Joins a job by a port, and says so when it has left. @param {import("pamir").AttachPort} port */
export async function join(port) {
  const client = await attach(port);
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
