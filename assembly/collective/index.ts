// The exports of the collectives' wasm module, which a task loads with its first collective or typed transfer.
import { LAYOUT_HASH } from "../layout-hash";

export { copyCold } from "./copy";
export { pack, unpack } from "./pack";
export { reduce } from "./reduce";

/** Hash of the sources that this module was compiled from: it must be the loader's. */
export function layoutHash(): u32 {
  return LAYOUT_HASH;
}
