// Errors of sockets that do not open, in words.
import { PamiError } from "../core/error.js";

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use (EADDRINUSE)",
  EADDRNOTAVAIL: "this machine has no such address (EADDRNOTAVAIL)",
  EACCES: "the system does not allow that port (EACCES)",
  EAFNOSUPPORT: "this machine has no addresses of that family (EAFNOSUPPORT)",
};

/** The error for a socket that does not open at an address. @param what kind of socket it is */
export function notOpened(what: string, address: string, cause: unknown): PamiError {
  if (cause instanceof PamiError) return cause;
  const { code, message } = cause as Error & { code?: string };
  return new PamiError("PAMIR_ADDRESS", `no ${what} at ${address}: ${REASONS[code ?? ""] ?? message}`, { cause });
}
