// Errors of operations with wrong arguments. Hot paths find out that something is wrong; these functions say what.
import * as L from "../../../assembly/layout.js";
import { checkFunction } from "../../core/check.js";
import { checkInteger, PamiError } from "../../core/error.js";
import type { RmwParameters, TransferParameters } from "./parameters.js";

/**
 * Throws the error for a code of the kernel.
 * @param code TRANSFER_… @param local length of the local region, and offset there
 */
export function refuse(
  call: string,
  code: number,
  bytes: number,
  [localLength, localOffset]: readonly [number, number],
  { remote, remoteOffset = 0 }: Pick<TransferParameters, "remote" | "remoteOffset">,
): never {
  if (code === L.TRANSFER_INVALID) {
    throw new PamiError(
      "PAMIR_INVAL",
      `${call} of a word of ${bytes} bytes at offset ${remoteOffset}, result at ${localOffset}: not multiples of ${bytes}`,
    );
  }
  if (code === L.TRANSFER_LOCAL_CLOSED) throw new PamiError("PAMIR_CLOSED", `${call}: the local region is closed`);
  if (code === L.TRANSFER_LOCAL_BOUNDS) {
    throw new PamiError(
      "PAMIR_BOUNDS",
      `${call} of ${bytes} bytes at offset ${localOffset} of a local region of ${localLength}`,
    );
  }
  if (code === L.TRANSFER_REMOTE_BOUNDS) {
    throw new PamiError("PAMIR_BOUNDS", `${call} of ${bytes} bytes at offset ${remoteOffset} of the remote region`);
  }
  throw new PamiError("PAMIR_STALE", `${call}: handle ${remote} names no open region`);
}

/** @throws PAMIR_INVAL */
export function checkCallbacks(onLocal: unknown, onRemote: unknown): void {
  if (onLocal !== undefined && typeof onLocal !== "function") checkFunction("onLocal, or onDone,", onLocal);
  if (onRemote !== undefined && typeof onRemote !== "function") checkFunction("onRemote", onRemote);
}

/** Throws the error of a transfer that shows without looking at the regions. */
export function refuseTransfer(
  call: string,
  { local, localOffset = 0, remoteOffset = 0, bytes = 0 }: TransferParameters,
): never {
  checkWord(call, "localOffset", localOffset);
  checkWord(call, "remoteOffset", remoteOffset);
  checkWord(call, "bytes", bytes);
  throw new PamiError("PAMIR_BOUNDS", `${call} at offset ${localOffset} of a local region of ${local.length}`);
}

/** Throws the error of an rmw that shows without looking at the regions. */
export function refuseRmw(parameters: RmwParameters, fetches: boolean): void {
  const { operation, result, resultOffset = 0, remoteOffset = 0 } = parameters;
  if (fetches !== (result !== undefined)) {
    throw new PamiError("PAMIR_INVAL", `rmw ${operation} ${fetches ? "needs a result" : "has no result"}`);
  }
  checkWord("rmw", "resultOffset", resultOffset);
  checkWord("rmw", "remoteOffset", remoteOffset);
}

/** Whether a value is a u32. */
export function isWord(value: unknown): boolean {
  return typeof value === "number" && value === value >>> 0;
}

/** Throws unless a byte count or offset is a u32. */
export function checkWord(call: string, name: string, value: unknown): void {
  checkInteger(`${name} of a ${call}`, value, 0, L.NONE);
}
