// @ts-check
// A worker that the page has started, and that serves functions there.
import { move, serve } from "pamir/pool";

serve(
  {
    /** @param {Uint8Array} bytes */
    back: (bytes) => move(bytes.fill(5)),
  },
  { port: /** @type {any} */ (self) },
);
