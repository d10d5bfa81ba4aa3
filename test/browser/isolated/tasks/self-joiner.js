// @ts-check
// A worker of somebody else, which joins a job by its own messages, as often as it is told to.
import { join } from "./joiner.js";

self.addEventListener("message", ({ data }) => {
  if (data === "join") void join(/** @type {import("pamir").AttachPort} */ (/** @type {unknown} */ (self)));
});
