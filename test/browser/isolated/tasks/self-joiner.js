// @ts-check
// A worker that the program started, which joins a job by its own messages, as often as it is told to.
import { join } from "./joiner.js";

self.addEventListener("message", ({ data }) => {
  if (data === "join") void join(/** @type {import("pamir").AttachPort} */ (/** @type {unknown} */ (self)));
});
