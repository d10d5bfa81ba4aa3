// The address of this machine at which other nodes reach a node. Only for Node.
import type { NetworkInterfaceInfo } from "node:os";
import { PamiError, show } from "../../core/error.js";

/** An IP address or a name, as in PAMIR_BIND_HOST. */
const HOST = /^[\w.:%-]+$/;
/**
 * An unspecified address. A socket bound to such an address sends from another one, so replies would go to a different address
 * than packets came from.
 */
const EVERY = /^(::ffff:)?[0.:]+(%.*)?$/i;

/**
 * PAMIR_BIND_HOST, or the first IPv4 address but loopback, or on a machine without any the first IPv6 address that other
 * machines can reach. An IPv6 address is in brackets.
 * @throws PAMIR_ADDRESS
 */
export function ownAddress(
  given: string | undefined,
  interfaces: () => Iterable<readonly NetworkInterfaceInfo[] | undefined>,
): string {
  if (given !== undefined) {
    const isEvery = EVERY.test(given);
    if (HOST.test(given) && !isEvery) return inBrackets(given);
    const why = isEvery
      ? "which is every address of this machine: name the one that other nodes send to"
      : "not an address or a name of this machine";
    throw new PamiError("PAMIR_ADDRESS", `PAMIR_BIND_HOST is ${show(given)}, ${why}`);
  }
  const others = [...interfaces()].flatMap((list) => list ?? []).filter(({ internal }) => !internal);
  const found =
    others.find(({ family }) => family === "IPv4") ?? others.find((one) => one.family === "IPv6" && one.scopeid === 0);
  if (found !== undefined) return inBrackets(found.address);
  throw new PamiError("PAMIR_ADDRESS", "this machine has no address but loopback: PAMIR_BIND_HOST names another one");
}

function inBrackets(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
