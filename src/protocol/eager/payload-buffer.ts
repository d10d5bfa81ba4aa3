// The buffer that holds the current message's payload: it goes back when the handler has returned, or becomes a region of this
// task.
import * as L from "../../../assembly/layout.js";
import { PamiError } from "../../core/error.js";
import type { Message, MessageHost } from "../../core/message/message.js";
import type { MemRegion, RegionState } from "../../core/region.js";
import { type Callback, SUCCESS } from "../../core/result.js";
import type { RegionTable } from "../../memory/regions.js";
import { taskAt } from "../../node/address.js";
import { copyInto } from "../../support/copy.js";
import type { ContextParts } from "../base.js";

interface BufferParts extends ContextParts {
  readonly regions: RegionTable;
  /** Whether a handler may be running. */
  isAdvancing(): boolean;
}

/** One object for each context, filled anew for each message in a buffer. */
export class PayloadBuffer implements MessageHost {
  readonly #parts: BufferParts;
  /** 0: the current message has no buffer. */
  #slot = 0;
  #extent = 0;
  #place = 0;
  /** The task that has sent it. */
  #owner = 0;
  #isGiven = false;
  /** Set by keep(). */
  #kept: MemRegion | undefined;

  constructor(parts: BufferParts) {
    this.#parts = parts;
  }

  /** Takes the buffer that a BUFFER record names. */
  take(body: number, origin: number): void {
    const { memory, map } = this.#parts;
    const word = (offset: number): number => (memory.words[(body + offset) >>> 2] as number) >>> 0;
    this.#slot = word(L.BUFFER_SLOT_OFFSET);
    this.#extent = word(L.BUFFER_EXTENT_OFFSET);
    this.#place = word(L.BUFFER_PLACE_OFFSET);
    this.#owner = taskAt(map, origin);
    this.#isGiven = word(L.BUFFER_GIVEN_OFFSET) !== 0;
    this.#kept = undefined;
  }

  /** The handler has returned: the buffer goes back, unless the handler keeps it. */
  release(): void {
    const slot = this.#slot;
    const { kernel, regions } = this.#parts;
    const isKept = this.#kept !== undefined;
    this.#slot = 0;
    this.#kept = undefined;
    if (isKept) return;
    if (!this.#isGiven) kernel.bufferRelease(slot, L.BUFFER_FREE);
    else regions.release(this.#owner, this.#extent, () => kernel.bufferRelease(slot, L.BUFFER_GONE));
  }

  /** See Message.keep(). */
  keep(message: Message): MemRegion {
    const { payloadBytes } = message;
    const { kernel, regions, isAdvancing } = this.#parts;
    if (!isAdvancing()) throw new PamiError("PAMIR_INVAL", "keep() outside of the message's handler");
    if (!message.immediate) throw new PamiError("PAMIR_INVAL", "keep() of a payload that is not here: use receive()");
    if (payloadBytes === 0) throw new PamiError("PAMIR_INVAL", "keep() of a payload of 0 bytes");
    const slot = this.#slot;
    if (slot !== 0) {
      this.#kept ??= regions.adopt(this.#owner, this.#extent, this.#place, payloadBytes, () =>
        kernel.bufferRelease(slot, L.BUFFER_GONE),
      );
      return this.#kept;
    }
    const region = regions.create(payloadBytes);
    copyInto(region.bytes, 0, message.payload);
    return region;
  }

  /** See Message.receive(): a payload that is here was copied. */
  complete(onComplete: Callback, cookie: unknown): void {
    this.#parts.completions.push(onComplete, cookie, SUCCESS);
  }

  regionOf(view: Uint8Array): RegionState | undefined {
    return this.#parts.regions.stateOf(view);
  }
}
