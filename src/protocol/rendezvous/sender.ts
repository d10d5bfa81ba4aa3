// The origin's side of rendezvous. A request to send (RTS) offers a payload, which stays in place until it is moved to the
// target. A payload outside of regions goes through a ring of fragments in a region. A fragment is staged as soon as the
// previous fragment in its place has been moved.
import * as L from "../../../assembly/layout.js";
import { alignUp } from "../../../assembly/seq.js";
import type { Message } from "../../core/message/message.js";
import type { MemRegion, RegionState } from "../../core/region.js";
import type { Callback, Result } from "../../core/result.js";
import type { RegionTable } from "../../memory/regions.js";
import { endpointCount, isRemote } from "../../node/address.js";
import { copyInto, wasCut } from "../../support/copy.js";
import type { AbortSignalLike } from "../../support/like.js";
import type { ContextParts } from "../base.js";
import { onAbort, type RgetFifo, regionIfAny, type Side, slotOf, type TransferTable } from "./transfers.js";

/** A payload that is to be offered. */
export interface Offer {
  readonly payload: Uint8Array;
  /** Bytes of the payload when it was sent: a buffer that is detached or shrunk makes the view shorter. */
  readonly bytes: number;
  readonly onLocal: Callback;
  readonly onRemote: Callback | undefined;
  readonly cookie: unknown;
  readonly signal: AbortSignalLike | undefined;
  /** The region that holds the payload. */
  readonly region: RegionState | undefined;
}

/** Whether an offer's payload no longer exists: its region was closed, or its buffer detached or shrunk. */
function isPayloadClosed({ payload, bytes, region }: Offer): boolean {
  return region?.closed === true || wasCut(payload, bytes);
}

/** Most payloads offered to one target that the target has not taken yet; more payloads wait in the pending queue. */
const OFFERS_MAX = 8;
/** Most payloads of one context that are staged at a time; further payloads go in packets. */
const STAGINGS_MAX = 8;
/** Bytes of a fragment of a staged payload, unless there would be more than LINK_COUNT_MAX. */
const STAGED_BYTES = 65536;

/** The ring of a payload that is staged. */
interface Ring {
  readonly region: MemRegion;
  readonly fragment: number;
  /** Bytes of the payload that have been copied into the ring. */
  at: number;
}

/** Most bytes of a payload that a target in another node asks for at a time: each slice is delivered whole. */
export const PULL_BYTES = 65536;
/** Words of the header of a PULL and of a NOTICE. */
export const PULL_WORDS = 6;
export const NOTICE_WORDS = 5;

/** A payload that has been offered. */
interface Offered extends Side {
  readonly offer: Offer;
  readonly ring: Ring | undefined;
}

export class RendezvousSender {
  /** Payloads that have been offered. */
  count = 0;
  readonly #base: ContextParts;
  readonly #regions: RegionTable;
  readonly #transfers: TransferTable;
  /** Offered payloads whose target is in another node. */
  readonly #away = new Set<Offered>();
  /** How many were offered, by target. */
  readonly #counts: Uint8Array;
  /** Offered payloads that are staged. */
  readonly #staged: Offered[] = [];
  /** Regions for the rings of later payloads. */
  readonly #rings: MemRegion[] = [];

  constructor(base: ContextParts, regions: RegionTable, transfers: TransferTable) {
    this.#base = base;
    this.#regions = regions;
    this.#transfers = transfers;
    this.#counts = new Uint8Array(endpointCount(base.map));
    base.handlers.handle(L.DISPATCH_ID_PULL, (message) => this.#pulled(message));
    base.handlers.handle(L.DISPATCH_ID_NOTICE, (message) => this.#noticed(message));
  }

  /** Whether one more payload may be offered to a target now. */
  mayBegin(target: number): boolean {
    return (this.#counts[target] as number) < OFFERS_MAX;
  }

  /** Secures the memory for begin(). False: there is none. */
  reserve({ payload, bytes: payloadBytes }: Offer): boolean {
    if (!this.#transfers.reserve()) return false;
    if (this.#regions.find(payload) !== undefined) return true;
    if (this.#staged.length === STAGINGS_MAX) return false;
    const bytes = ringBytes(payloadBytes);
    const ring = this.#smallestRing(bytes) ?? this.#makeRing(bytes);
    if (ring === undefined) return false;
    // begin() takes the last.
    this.#rings.push(...this.#rings.splice(this.#rings.indexOf(ring), 1));
    return true;
  }

  #smallestRing(bytes: number): MemRegion | undefined {
    let smallest: MemRegion | undefined;
    for (const ring of this.#rings) {
      if (ring.length >= bytes && ring.length < (smallest?.length ?? Number.POSITIVE_INFINITY)) smallest = ring;
    }
    return smallest;
  }

  /** Makes a ring in place of a kept one, so that no more rings are kept than were in use at a time. */
  #makeRing(bytes: number): MemRegion | undefined {
    this.#rings.pop()?.close();
    const ring = regionIfAny(this.#regions, bytes);
    if (ring !== undefined) this.#rings.push(ring);
    return ring;
  }

  /**
   * Offers a payload, once there is memory for the offer: writes its RTS, which the target sees once the record is committed.
   */
  begin(offer: Offer, target: number, rts: number): void {
    const { words } = this.#base.memory;
    const { payload, bytes } = offer;
    const found = this.#regions.find(payload);
    const isStaged = found === undefined;
    const fragment = isStaged ? stagedFragment(bytes) : 0;
    const region = isStaged ? (this.#rings.pop() as MemRegion) : undefined;
    const ring = region && { region, fragment, at: 0 };
    const allowed = ring === undefined ? L.NONE : 0;
    const { rgetFifo } = this.#transfers.open(target, allowed, (own) => this.#offered(own, offer, ring)) as Offered;
    words[(rgetFifo.pointer + L.RGET_FIFO_BYTES_OFFSET) >>> 2] = bytes; // for the dump
    const { index, generation } = found ?? (region as MemRegion);
    // Word by word: a list of pairs took 90 ns.
    const at = rts >>> 2;
    words[at + (L.RTS_BYTES_OFFSET >>> 2)] = bytes;
    words[at + (L.RTS_INDEX_OFFSET >>> 2)] = index;
    words[at + (L.RTS_GENERATION_OFFSET >>> 2)] = generation;
    words[at + (L.RTS_OFFSET_OFFSET >>> 2)] = found === undefined ? 0 : payload.byteOffset - found.pointer;
    words[at + (L.RTS_BLOCK_INDEX_OFFSET >>> 2)] = rgetFifo.region.index;
    words[at + (L.RTS_BLOCK_GENERATION_OFFSET >>> 2)] = rgetFifo.region.generation;
    words[at + (L.RTS_PLACE_OFFSET >>> 2)] = rgetFifo.offset;
    words[at + (L.RTS_FRAGMENT_OFFSET >>> 2)] = fragment;
    words[at + (L.RTS_FIFO_OFFSET >>> 2)] = rgetFifo.generation;
  }

  /** Stages the fragments for which the rings have room. */
  advance(): void {
    for (const offered of this.#staged) this.#stage(offered);
  }

  /** Whether advance() would do something. */
  get hasWork(): boolean {
    return this.#staged.some((offered) => this.#room(offered) > 0);
  }

  /** The context closes. */
  close(): void {
    for (const { ring } of this.#staged) ring?.region.close();
    for (const region of this.#rings) region.close();
  }

  #offered(rgetFifo: RgetFifo, offer: Offer, ring: Ring | undefined): Offered {
    const { completions } = this.#base;
    const unheard = onAbort(offer.signal, () => this.#transfers.stop(rgetFifo));
    const offered: Offered = {
      rgetFifo,
      offer,
      ring,
      resultOffset: L.RGET_FIFO_RESULT_OFFSET,
      forget: () => {
        unheard();
        this.#away.delete(offered);
      },
      // If the target has not begun, it begins later with its own engine.
      breakOff: () => this.#base.kernel.chainBreak(this.#base.map.job, rgetFifo.pointer) !== 0,
      over: (result: Result) => {
        this.count--;
        this.#counts[rgetFifo.peer] = (this.#counts[rgetFifo.peer] as number) - 1;
        if (ring !== undefined) {
          this.#staged.splice(this.#staged.indexOf(offered), 1);
          this.#rings.push(ring.region);
        }
        const { onLocal, onRemote, cookie } = offer;
        completions.push(onLocal, cookie, result);
        if (onRemote !== undefined) completions.push(onRemote, cookie, result);
      },
    };
    this.count++;
    this.#counts[rgetFifo.peer] = (this.#counts[rgetFifo.peer] as number) + 1;
    if (isRemote(this.#base.map, rgetFifo.peer)) this.#away.add(offered);
    if (ring !== undefined) {
      this.#staged.push(offered);
      this.#stage(offered);
    }
    return offered;
  }

  /**
   * The payload whose rget FIFO a message from another node names. Undefined: the transfer is over, or the payload was not
   * offered to that target.
   */
  #spokenOf(message: Message): Offered | undefined {
    const word = (place: number): number => message.headerWord(4 * place) >>> 0;
    for (const offered of this.#away) {
      const { region, offset, generation, peer } = offered.rgetFifo;
      const isOne = region.index === word(0) && region.generation === word(1) && offset === word(2);
      if (!isOne || generation !== word(3)) continue;
      return this.#base.addresses.endpointAt(peer) === message.origin ? offered : undefined;
    }
    return undefined;
  }

  /** A target asks for a slice of a payload. */
  #pulled(message: Message): void {
    const offered = message.headerBytes === 4 * PULL_WORDS ? this.#spokenOf(message) : undefined;
    if (offered === undefined) return;
    const [at, bytes] = [message.headerWord(16) >>> 0, message.headerWord(20) >>> 0];
    const { rgetFifo, offer } = offered;
    if (bytes > PULL_BYTES || at + bytes > offer.bytes) return;
    const stop = this.#transfers.stopOf(rgetFifo.pointer);
    const result = stop === L.TRANSFER_DONE && isPayloadClosed(offer) ? L.TRANSFER_BROKEN : stop;
    const payload = result === L.TRANSFER_DONE ? offer.payload.subarray(at, at + bytes) : undefined;
    this.#base.tell(message.origin, L.DISPATCH_ID_PULLED, wordsOf(rgetFifo, at, result), payload);
  }

  /** A target has finished with a payload. */
  #noticed(message: Message): void {
    const offered = message.headerBytes === 4 * NOTICE_WORDS ? this.#spokenOf(message) : undefined;
    if (offered === undefined) return;
    const { kernel, map, ordinal } = this.#base;
    const { region, offset, generation } = offered.rgetFifo;
    const result = message.headerWord(16);
    kernel.chainNotice(map.job, region.index, region.generation, offset, generation, ordinal, result);
  }

  /** Bytes that may be copied into the ring now. */
  #room({ rgetFifo: { pointer }, ring, offer }: Offered): number {
    if (ring === undefined || ring.at === offer.bytes || this.#transfers.isStopped(pointer)) return 0;
    // SYNC passed (look): pairs with the engine or the target's thread, which moves the fragments: a passed fragment may be
    // overwritten.
    const passed = this.#base.kernel.loadWord(pointer + L.RGET_FIFO_PASSED_OFFSET);
    return Math.min(offer.bytes, (passed + L.STAGED_COUNT) * ring.fragment) - ring.at;
  }

  #stage(offered: Offered): void {
    const { rgetFifo, ring, offer } = offered;
    const room = this.#room(offered);
    if (ring === undefined || room <= 0) return;
    if (isPayloadClosed(offer)) {
      this.#transfers.stop(rgetFifo, L.TRANSFER_BROKEN);
      return;
    }
    const { fragment, region } = ring;
    for (const end = ring.at + room; ring.at < end; ) {
      const part = offer.payload.subarray(ring.at, Math.min(end, ring.at + fragment));
      copyInto(region.bytes, ((ring.at / fragment) % L.STAGED_COUNT) * fragment, part);
      ring.at += part.length;
    }
    const { kernel, map, engine } = this.#base;
    // SYNC staged (staged): makes the fragments visible; pairs with the engine or the target's thread, which moves the
    // fragments.
    kernel.storeWord(rgetFifo.pointer + L.RGET_FIFO_ALLOWED_OFFSET, Math.ceil(ring.at / fragment));
    if (!engine.isOwn) engine.call();
    kernel.ring(slotOf(map, rgetFifo.peer));
  }
}

/** The header of a message about an rget FIFO of this context. */
function wordsOf({ region, offset, generation }: RgetFifo, ...words: number[]): Uint8Array {
  return new Uint8Array(Int32Array.of(region.index, region.generation, offset, generation, ...words).buffer);
}

/** Bytes of the ring of a staged payload. A payload shorter than the ring takes only its own size. */
function ringBytes(bytes: number): number {
  return Math.min(L.STAGED_COUNT * stagedFragment(bytes), alignUp(bytes, L.PAGE_SIZE));
}

/** Bytes of a fragment of a payload that is staged. */
function stagedFragment(bytes: number): number {
  return alignUp(Math.max(STAGED_BYTES, Math.ceil(bytes / L.LINK_COUNT_MAX)), L.PAGE_SIZE);
}
