// What attach() checks in a task, for a launcher that checks it before any task. Loaded only where there is something to check.
import { type JoinOptions, joinOptions, kernelOf, portOf } from "../../launch/join-options.js";
import { checkLimits } from "../../launch/limits.js";
import { ownAddress } from "../../launch/own-address.js";

/**
 * Options of a job as PAMIR_OPTIONS has them.
 * @param given come before those of `text` @param nodes and tasks of each: `locals` @throws PAMIR_INVAL, PAMIR_MEMORY, PAMIR_NO_WASM
 */
export function checkedOptions(text: string, given: JoinOptions, nodes: number, locals: number): JoinOptions {
  const options = { ...joinOptions(text), ...given };
  kernelOf(options);
  checkLimits(options, locals);
  portOf(options, nodes - 1);
  return options;
}

/** @throws PAMIR_ADDRESS if PAMIR_BIND_HOST is none that a node can have */
export function checkBindHost(given: string | undefined): void {
  if (given !== undefined) ownAddress(given, () => []);
}
