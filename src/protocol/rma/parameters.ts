// What callers give to put, get and rmw; and for debug mode, which parameters exist.
import type { Keys } from "../../core/check.js";
import type { Endpoint } from "../../core/endpoint.js";
import type { MemRegion, RegionHandle } from "../../core/region.js";
import type { Callback } from "../../core/result.js";
import type { TransferType } from "../../core/transfer-type.js";
import type { RmwOperation, RmwType } from "./rmw.js";

/** Parameters of `put` and `get`, which read them before they return, so that one object can serve every call. */
export interface TransferParameters {
  /** Endpoint of a context of the task that owns the remote region. */
  to: Endpoint;
  /** Region of this task. */
  local: MemRegion;
  /** Byte offset in the local region (default 0). */
  localOffset?: number;
  /** Handle of a region of the target's task. */
  remote: RegionHandle;
  /** Byte offset in the remote region (default 0). */
  remoteOffset?: number;
  /** Number of bytes, from 0 (default: the rest of the local region). */
  bytes?: number;
  /** Called in a later `advance()`, when the local bytes may be reused (put) or have arrived (get). */
  onLocal?: Callback | undefined;
  /** Called in a later `advance()`, when the bytes are visible at the target. */
  onRemote?: Callback | undefined;
  /** Value that the callbacks get. */
  cookie?: unknown;
  /**
   * Type of the elements in the local region, from `localOffset` on. `bytes` then counts data alone (default: one element), and
   * further elements follow at the type's extent. Within one memory the calling thread moves all data before the call returns.
   */
  localType?: TransferType | undefined;
  /** Type of the elements in the remote region. For another node, a type has at most 16,384 contiguous runs. */
  remoteType?: TransferType | undefined;
}

/** An i32 word of a region of the target's task. A put changes it atomically after its bytes. */
export interface NotifyWord {
  /** Handle of the region. */
  readonly remote: RegionHandle;
  /** Byte offset of the word in the region, a multiple of 4 (default 0). */
  readonly offset?: number;
  /** Operation on the word (default "add"). */
  readonly operation?: "set" | "add" | "or" | "and" | "xor";
  /** Operand, an i32 (default 1). */
  readonly value?: number;
}

/** Parameters of `put`, which reads them before it returns. */
export interface PutParameters extends TransferParameters {
  /**
   * Notification of the target once the bytes are there, which wakes a sleeping target. With a dispatch id, the context `to`
   * gets a message of 16 bytes: remote offset and number of bytes as i32, and the handle as f64. Or a word that `waitWord()` of
   * the target reads. Notifications to one endpoint come in the order of the puts and rmws.
   */
  notify?: number | NotifyWord | undefined;
}

/** An operand in a word of a region of this task: a 64-bit value without a BigInt. */
export interface RegionWord {
  /** Region of this task. */
  readonly region: MemRegion;
  /** Byte offset of the word, a multiple of its size (default 0). */
  readonly offset?: number;
}

export type Operand = number | bigint | RegionWord;

/** Parameters of `rmw`, which reads them before it returns. */
export interface RmwParameters {
  /** Endpoint of a context of the task that owns the region. */
  to: Endpoint;
  /** Handle of a region of the target's task. */
  remote: RegionHandle;
  /** Byte offset of the word in the region, a multiple of its size (default 0). */
  remoteOffset?: number;
  /** Operation on the word. */
  operation: RmwOperation;
  /** Type of the word (default i32). Always use the same width for a word. */
  type?: RmwType;
  /** Operand. For a 64-bit word, a number may be up to 2^53 in size. */
  value: Operand;
  /** For a compare: the operation is done only if the word equals this value. */
  test?: Operand;
  /** For a fetch: region of this task that gets the old value. */
  result?: MemRegion;
  /** Byte offset in `result`, a multiple of the word's size (default 0). */
  resultOffset?: number;
  /** Called in a later `advance()`, when the operation is done and the old value is in `result`. */
  onDone?: Callback | undefined;
  /** `true` wakes the target's task, for example in a `waitWord()` of this word. Other values work as for a put. */
  notify?: boolean | number | NotifyWord | undefined;
  /** Value that `onDone` gets. */
  cookie?: unknown;
}

export const TRANSFER_KEYS: Keys<TransferParameters> = {
  to: true,
  local: true,
  localOffset: true,
  remote: true,
  remoteOffset: true,
  bytes: true,
  onLocal: true,
  onRemote: true,
  cookie: true,
  localType: true,
  remoteType: true,
};
export const PUT_KEYS: Keys<PutParameters> = { ...TRANSFER_KEYS, notify: true };
export const RMW_KEYS: Keys<RmwParameters> = {
  notify: true,
  to: true,
  remote: true,
  remoteOffset: true,
  operation: true,
  type: true,
  value: true,
  test: true,
  result: true,
  resultOffset: true,
  onDone: true,
  cookie: true,
};
