// @ts-check
// A pool's worker that serves, and dies soon after.
import { serve } from "pamir/pool";

export const api = serve({ square: (/** @type {number} */ number) => number ** 2 });
setInterval(() => {
  throw new Error("soon after");
}, 100);
