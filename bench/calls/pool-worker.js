// @ts-check
import { move, serve } from "pamir/pool";
import { echo, square } from "./functions.js";

export const api = serve({ square, echo, back: (/** @type {Uint8Array} */ bytes) => move(bytes) });
