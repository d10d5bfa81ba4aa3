// What attach() checks in a task, for a launcher that checks it before any task. Loaded only where there is something to check.

import { type LinkKinds, linkKinds, linkModule } from "../../link/registry.js";
import { checkLink, joinOptions, kernelOf, type ProcessJoinOptions, portOf } from "../../start/join/join-options.js";
import { ownAddress } from "../../start/join/own-address.js";
import { checkLimits } from "../../start/limits.js";

/** The kinds of links that tasks may name, whose PAMIR_LINK_MODULE is `given`. @throws PAMIR_LINK_MODULE */
export async function kindsOf(given: string | undefined): Promise<LinkKinds> {
  // An empty text counts as none: that of this process is not meant.
  return linkKinds(linkModule(given ?? ""));
}

/**
 * Options of a job as PAMIR_OPTIONS has them.
 * @param kinds of links @param given come before those of `text` @param nodes and tasks of each: `locals` @throws PAMIR_INVAL, PAMIR_MEMORY, PAMIR_NO_WASM
 */
export function checkedOptions(
  kinds: LinkKinds,
  text: string,
  given: ProcessJoinOptions,
  nodes: number,
  locals: number,
): ProcessJoinOptions {
  const options = { ...joinOptions(kinds, text), ...given };
  checkLink(options, kinds);
  kernelOf(options);
  checkLimits(options, locals);
  portOf(options, nodes - 1);
  return options;
}

/** @throws PAMIR_ADDRESS if PAMIR_BIND_HOST is none that a node can have */
export function checkBindHost(given: string | undefined): void {
  if (given !== undefined) ownAddress(given, () => []);
}
