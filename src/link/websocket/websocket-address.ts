// Addresses of WebSocket servers as text: `ws://HOST:PORT/PATH` or `wss://…`, as URLs write them. Sessions compare addresses
// as strings, so each server has one canonical address.
import { PamiError, show } from "../../core/error.js";
import type { Address } from "../link.js";

/** Characters of the longest address: a server refuses a request line that is much longer. */
const LENGTH_MAX = 2000;

/**
 * The canonical form of an address: host and scheme in lower case, no port that the scheme implies, a path of at least "/".
 * @param portMin 0 for a server to be opened: the system chooses a port
 * @throws PAMIR_INVAL the text is no address of this kind
 */
export function parseWebSocketAddress(text: string, portMin: 0 | 1 = 1): Address {
  const url = urlOf(text);
  const wanted = "ws://HOST:PORT/PATH or wss://HOST:PORT/PATH";
  if (url === undefined || (url.protocol !== "ws:" && url.protocol !== "wss:")) throw refused(text, wanted);
  if (url.username !== "" || url.password !== "" || text.includes("?") || text.includes("#"))
    throw refused(text, `${wanted}, without a user, a query and a fragment`);
  if (url.port === "0" && portMin === 1) throw refused(text, `${wanted} with a port from 1 to 65535`);
  return url.href;
}

/** Undefined: the text is no URL. The parser takes spaces and other characters that no URL has. */
function urlOf(text: string): URL | undefined {
  if (typeof text !== "string" || text.length > LENGTH_MAX || !/^[a-z]+:\/\/[\x21-\x5b\x5d-\x7e]+$/i.test(text)) {
    return undefined;
  }
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

function refused(text: unknown, wanted: string): PamiError {
  // What is printed has a bound: the text may come from anywhere.
  const shown = typeof text === "string" && text.length > 300 ? `${show(text.slice(0, 300))}…` : show(text);
  return new PamiError("PAMIR_INVAL", `a WebSocket address is ${shown}, not ${wanted}`);
}
