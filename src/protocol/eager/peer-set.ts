// State that the targets of one context share.
import * as L from "../../../assembly/layout.js";
import type { CompletionQueue } from "../../core/completion.js";
import type { Activity } from "../../core/progress.js";
import { type Result, SUCCESS } from "../../core/result.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import type { MemoryMap } from "../../memory/map.js";
import { isRemote, type SlotTable } from "../../node/address.js";
import { type Clock, stampOf } from "../../support/clock.js";
import { diagnostics } from "../../support/diagnostics.js";
import type { Buffers, Lanes } from "../../transport/transport.js";
import type { ContextParts } from "../base.js";
import type { RendezvousSender } from "../rendezvous/sender.js";
import type { Ending } from "./pending.js";

/** State that the targets of one context share. */
export class PeerSet {
  /** Targets with pending messages or waiters for room: work for the next advance. */
  busy = 0;
  /** A message waits for an event for which no task rings the bell: look again soon. */
  retrySoon = false;
  /** Bytes of copies in the pending queues. */
  pendingBytes = 0;
  /** The lane by a target's ordinal where the direct path is open, else 0. */
  direct: Uint32Array;
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly lanes: Lanes;
  readonly completions: CompletionQueue;
  readonly rendezvous: RendezvousSender;
  readonly buffers: Buffers;
  readonly pendingMax: number;
  /** See Base. */
  readonly posted: (() => void) | undefined;
  readonly #activity: Activity;
  readonly addresses: SlotTable;
  readonly #map: MemoryMap;
  readonly #clock: Clock;
  /** Pointer to the block of the context. */
  readonly #block: number;
  #pendingCount = 0;

  constructor(
    { kernel, memory, map, addresses, clock, block, lanes, buffers, completions, posted, activity }: ContextParts,
    rendezvous: RendezvousSender,
    pendingMax: number,
  ) {
    this.rendezvous = rendezvous;
    this.buffers = buffers;
    this.#activity = activity;
    this.addresses = addresses;
    this.#map = map;
    this.#block = block;
    this.#clock = clock;
    this.kernel = kernel;
    this.memory = memory;
    this.lanes = lanes;
    this.completions = completions;
    this.pendingMax = pendingMax;
    this.posted = posted;
    this.direct = new Uint32Array(lanes.open.length);
  }

  /** Whether a target is in another node. */
  isRemote(ordinal: number): boolean {
    return isRemote(this.#map, ordinal);
  }

  /** One target more, or one fewer, has pending messages or waiters for room. */
  count(change: 1 | -1): void {
    this.busy += change;
    this.#activity.add(change);
  }

  /**
   * One message more, or one fewer, is in the pending queues, with so many copied bytes. Also stored in the context's block.
   */
  held(messages: 1 | -1, bytes: number): void {
    this.#pendingCount += messages;
    this.pendingBytes += messages * bytes;
    const { words } = this.memory;
    words[(this.#block + L.CONTEXT_PENDING_COUNT_OFFSET) >>> 2] = this.#pendingCount;
    words[(this.#block + L.CONTEXT_PENDING_BYTES_OFFSET) >>> 2] = this.pendingBytes;
  }

  /** A message is sent, or is not sent any more. @returns `result` */
  complete({ onLocal, onRemote, cookie, gift }: Ending, result: Result): Result {
    if (result === SUCCESS) gift?.accept();
    gift?.drop();
    if (onLocal !== undefined) this.completions.push(onLocal, cookie, result);
    if (onRemote !== undefined) this.completions.push(onRemote, cookie, result);
    return result;
  }

  /** A lane has no room from now on: stores the time stamp, for the dump. */
  full(lane: number, target: number, bytes: number): void {
    this.memory.words[(lane + L.LANE_WANTED_SINCE_OFFSET) >>> 2] = stampOf(this.#clock, this.#clock.now());
    if (!diagnostics.full.hasSubscribers) return;
    const { addresses, lanes } = this;
    const { origin } = lanes;
    diagnostics.full.publish({ from: addresses.endpointAt(origin), to: addresses.endpointAt(target), bytes });
  }
}
