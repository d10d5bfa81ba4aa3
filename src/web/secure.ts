// Whether an address may be used. Packets are sealed at `ws:` too, but a page that a network can change keeps no secret.
import { PamiError } from "../core/error.js";
import type { Address } from "../link/link.js";

/** @throws PAMIR_INSECURE */
export function checkSecure(call: string, address: Address, insecure: boolean | undefined): void {
  if (insecure === true || address.startsWith("wss:")) return;
  throw new PamiError("PAMIR_INSECURE", `${call} at ${address}, which is not wss: allow it by insecure: true`);
}
