// @ts-check
import { recycle } from "pamir";
import { move, serve } from "pamir/pool";
import { echo, square } from "./functions.js";

export const api = serve({
  square,
  echo,
  back: (/** @type {Uint8Array} */ bytes) => move(bytes),
  size: (/** @type {Uint8Array} */ { length }) => length,
  sizeRecycled(/** @type {Uint8Array} */ bytes) {
    const { length } = bytes;
    recycle(bytes);
    return length;
  },
});
