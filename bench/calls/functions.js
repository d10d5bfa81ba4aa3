// @ts-check
// The functions that each system's worker serves.
import { square } from "./square.js";

export { square };
export const echo = (/** @type {unknown} */ value) => value;
