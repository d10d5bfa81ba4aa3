// How long a ticket is good for.
import { checkKeys, type Keys } from "../core/check.js";
import { checkInteger } from "../core/error.js";
import type { InviteOptions } from "./host.js";

const DEFAULT_MS = 300_000;
const MAX_MS = 86_400_000;
const KEYS: Keys<InviteOptions> = { lifetime: true };

/** Of the options of invite(). @throws PAMIR_INVAL */
export function lifetimeOf(options: InviteOptions): number {
  checkKeys("options of invite()", options, KEYS);
  const { lifetime = DEFAULT_MS } = options;
  checkInteger("lifetime of invite()", lifetime, 1, MAX_MS);
  return lifetime;
}
