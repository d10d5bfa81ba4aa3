// The state that the parts of one context share: sender, receiver, one-sided operations.

import type { CompletionQueue } from "../core/completion.js";
import type { Endpoint } from "../core/endpoint.js";
import type { HandlerTable } from "../core/message/dispatch.js";
import type { Activity } from "../core/progress.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import type { MemoryMap } from "../memory/map.js";
import type { SlotTable } from "../node/address.js";
import type { ContextEngine } from "../node/engine.js";
import type { Clock } from "../support/clock.js";
import type { Buffers, Lanes } from "../transport/transport.js";

/**
 * See Sender.sendOwn(). The header is copied. A payload is copied only if the message takes one record: a larger payload must
 * not change until it is sent.
 */
export type Tell = (to: Endpoint, dispatch: number, header: Uint8Array, payload?: Uint8Array) => void;

export interface ContextParts {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  readonly addresses: SlotTable;
  readonly clock: Clock;
  /** Ordinal of the context's endpoint, and pointer to its block. */
  readonly ordinal: number;
  readonly block: number;
  readonly engine: ContextEngine;
  readonly lanes: Lanes;
  /** The buffer pool of the context's task. */
  readonly buffers: Buffers;
  readonly completions: CompletionQueue;
  /** Where the agent has no thread: called once a record was committed. */
  readonly posted: (() => void) | undefined;
  /** Sends a message to a dispatch id of pamir's own. */
  readonly tell: Tell;
  /** Where a protocol registers the handlers of its dispatch ids. */
  readonly handlers: HandlerTable;
  /** Counts each change of a part's `busy`. */
  readonly activity: Activity;
}
