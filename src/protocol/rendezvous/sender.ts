// The origin's side of rendezvous: payloads that are offered by a request to send (RTS), and stay where they are until the
// target has had them moved. One that lies in no region goes through a ring of portions in one, a portion as soon as the one
// in its place has been moved.
import {
  DISPATCH_ID_NOTICE,
  DISPATCH_ID_PULL,
  DISPATCH_ID_PULLED,
  LINK_COUNT_MAX,
  NONE,
  PAGE_SIZE,
  RTS_BLOCK_GENERATION_OFFSET,
  RTS_BLOCK_INDEX_OFFSET,
  RTS_BYTES_OFFSET,
  RTS_GENERATION_OFFSET,
  RTS_INDEX_OFFSET,
  RTS_OFFSET_OFFSET,
  RTS_PLACE_OFFSET,
  RTS_PORTION_OFFSET,
  RTS_WINDOW_OFFSET,
  STAGED_COUNT,
  TRANSFER_BROKEN,
  TRANSFER_DONE,
  WINDOW_ALLOWED_OFFSET,
  WINDOW_BYTES_OFFSET,
  WINDOW_PASSED_OFFSET,
  WINDOW_RESULT_OFFSET,
} from "../../../assembly/layout.js";
import { alignUp } from "../../../assembly/seq.js";
import type { Message } from "../../core/message.js";
import type { MemRegion } from "../../core/region.js";
import type { Callback, Result } from "../../core/result.js";
import type { RegionTable } from "../../memory/regions.js";
import { endpointCount, isAway } from "../../node/address.js";
import { copyInto, wasCut } from "../../support/copy.js";
import type { AbortSignalLike } from "../../support/like.js";
import type { Base } from "../base.js";
import { onAbort, regionIfAny, type Side, slotOf, type TransferTable, type Window } from "./transfers.js";

/** A payload that is to be offered. */
export interface Offer {
  readonly payload: Uint8Array;
  /** Bytes of it when it was sent: a buffer that is detached or shrunk makes the view shorter. */
  readonly bytes: number;
  readonly onLocal: Callback;
  readonly onRemote: Callback | undefined;
  readonly cookie: unknown;
  readonly signal: AbortSignalLike | undefined;
}

/** Payloads offered to one target that it has not taken yet; more wait in the pending queue. */
const OFFERS_MAX = 8;
/** Payloads of one context that are staged at a time; others go in packets. */
const STAGINGS_MAX = 8;
/** Of a payload that is staged: bytes of a portion, where it has no more than LINK_COUNT_MAX of them. */
const STAGED_BYTES = 65536;

/** The ring of a payload that is staged. */
interface Ring {
  readonly region: MemRegion;
  readonly portion: number;
  /** Bytes of the payload that have been copied into it. */
  at: number;
}

/** Most bytes of a payload that a target in another node asks for at a time: they are delivered whole. */
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
  readonly #base: Base;
  readonly #regions: RegionTable;
  readonly #transfers: TransferTable;
  /** Those whose target is in another node. */
  readonly #away = new Set<Offered>();
  /** How many were offered, by target. */
  readonly #counts: Uint8Array;
  /** Those that are staged. */
  readonly #staged: Offered[] = [];
  /** Regions that have been rings, and are again. */
  readonly #rings: MemRegion[] = [];

  constructor(base: Base, regions: RegionTable, transfers: TransferTable) {
    this.#base = base;
    this.#regions = regions;
    this.#transfers = transfers;
    this.#counts = new Uint8Array(endpointCount(base.map));
    base.handlers.handle(DISPATCH_ID_PULL, (message) => this.#pulled(message));
    base.handlers.handle(DISPATCH_ID_NOTICE, (message) => this.#noticed(message));
  }

  /** Whether one more may be offered to a target now. */
  mayBegin(target: number): boolean {
    return (this.#counts[target] as number) < OFFERS_MAX;
  }

  /** Sees to it that there is memory for begin(); false: there is none. */
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

  /** Makes a ring in the place of another, so that no more are kept than were in use at a time. */
  #makeRing(bytes: number): MemRegion | undefined {
    this.#rings.pop()?.close();
    const ring = regionIfAny(this.#regions, bytes);
    if (ring !== undefined) this.#rings.push(ring);
    return ring;
  }

  /** Offers a payload, once there is memory for it: writes its RTS, which the target sees when that is committed. */
  begin(offer: Offer, target: number, rts: number): void {
    const { words } = this.#base.memory;
    const { payload, bytes } = offer;
    const found = this.#regions.find(payload);
    const isStaged = found === undefined;
    const portion = isStaged ? stagedPortion(bytes) : 0;
    const region = isStaged ? (this.#rings.pop() as MemRegion) : undefined;
    const ring = region && { region, portion, at: 0 };
    const allowed = ring === undefined ? NONE : 0;
    const { window } = this.#transfers.open(target, allowed, (own) => this.#offered(own, offer, ring)) as Offered;
    words[(window.pointer + WINDOW_BYTES_OFFSET) >>> 2] = bytes; // for the dump
    const { index, generation } = found ?? (region as MemRegion);
    // One by one: as a list of pairs it took 90 ns.
    const at = rts >>> 2;
    words[at + (RTS_BYTES_OFFSET >>> 2)] = bytes;
    words[at + (RTS_INDEX_OFFSET >>> 2)] = index;
    words[at + (RTS_GENERATION_OFFSET >>> 2)] = generation;
    words[at + (RTS_OFFSET_OFFSET >>> 2)] = found === undefined ? 0 : payload.byteOffset - found.pointer;
    words[at + (RTS_BLOCK_INDEX_OFFSET >>> 2)] = window.region.index;
    words[at + (RTS_BLOCK_GENERATION_OFFSET >>> 2)] = window.region.generation;
    words[at + (RTS_PLACE_OFFSET >>> 2)] = window.offset;
    words[at + (RTS_PORTION_OFFSET >>> 2)] = portion;
    words[at + (RTS_WINDOW_OFFSET >>> 2)] = window.generation;
  }

  /** Stages what has room now. */
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

  #offered(window: Window, offer: Offer, ring: Ring | undefined): Offered {
    const { completions } = this.#base;
    const unheard = onAbort(offer.signal, () => this.#transfers.stop(window));
    const offered: Offered = {
      window,
      offer,
      ring,
      resultOffset: WINDOW_RESULT_OFFSET,
      forget: () => {
        unheard();
        this.#away.delete(offered);
      },
      // Where the target has not begun, it does so with its own engine.
      breakOff: () => this.#base.kernel.chainBreak(this.#base.map.job, window.pointer) !== 0,
      over: (result: Result) => {
        this.count--;
        this.#counts[window.peer] = (this.#counts[window.peer] as number) - 1;
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
    this.#counts[window.peer] = (this.#counts[window.peer] as number) + 1;
    if (isAway(this.#base.map, window.peer)) this.#away.add(offered);
    if (ring !== undefined) {
      this.#staged.push(offered);
      this.#stage(offered);
    }
    return offered;
  }

  /** The payload of whose window a target in another node speaks; undefined: it is over, or was not offered to that one. */
  #spokenOf(message: Message): Offered | undefined {
    const word = (place: number): number => message.headerWord(4 * place) >>> 0;
    for (const offered of this.#away) {
      const { region, offset, generation, peer } = offered.window;
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
    const { window, offer } = offered;
    if (bytes > PULL_BYTES || at + bytes > offer.bytes) return;
    const stop = this.#transfers.stopOf(window.pointer);
    const result = stop === TRANSFER_DONE && wasCut(offer.payload, offer.bytes) ? TRANSFER_BROKEN : stop;
    const payload = result === TRANSFER_DONE ? offer.payload.subarray(at, at + bytes) : undefined;
    this.#base.tell(message.origin, DISPATCH_ID_PULLED, wordsOf(window, at, result), payload);
  }

  /** A target is done with a payload. */
  #noticed(message: Message): void {
    const offered = message.headerBytes === 4 * NOTICE_WORDS ? this.#spokenOf(message) : undefined;
    if (offered === undefined) return;
    const { kernel, map, ordinal } = this.#base;
    const { region, offset, generation } = offered.window;
    const result = message.headerWord(16);
    kernel.chainNotice(map.job, region.index, region.generation, offset, generation, ordinal, result);
  }

  /** Bytes that may be copied into the ring now. */
  #room({ window: { pointer }, ring, offer }: Offered): number {
    if (ring === undefined || ring.at === offer.bytes || this.#transfers.isStopped(pointer)) return 0;
    // SYNC passed (look): pairs with the engine or the target's thread, which moves the portions: a passed one may be written over.
    const passed = this.#base.kernel.loadWord(pointer + WINDOW_PASSED_OFFSET);
    return Math.min(offer.bytes, (passed + STAGED_COUNT) * ring.portion) - ring.at;
  }

  #stage(offered: Offered): void {
    const { window, ring, offer } = offered;
    const room = this.#room(offered);
    if (ring === undefined || room <= 0) return;
    if (wasCut(offer.payload, offer.bytes)) {
      this.#transfers.stop(window, TRANSFER_BROKEN);
      return;
    }
    const { portion, region } = ring;
    for (const end = ring.at + room; ring.at < end; ) {
      const part = offer.payload.subarray(ring.at, Math.min(end, ring.at + portion));
      copyInto(region.bytes, ((ring.at / portion) % STAGED_COUNT) * portion, part);
      ring.at += part.length;
    }
    const { kernel, map, engine } = this.#base;
    // SYNC staged (staged): makes the portions visible; pairs with the engine or the target's thread, which moves them.
    kernel.storeWord(window.pointer + WINDOW_ALLOWED_OFFSET, Math.ceil(ring.at / portion));
    if (!engine.isOwn) engine.call();
    kernel.ring(slotOf(map, window.peer));
  }
}

/** The header of a message about a window of this context. */
function wordsOf({ region, offset, generation }: Window, ...words: number[]): Uint8Array {
  return new Uint8Array(Int32Array.of(region.index, region.generation, offset, generation, ...words).buffer);
}

/** Bytes of the ring of a payload that is staged: one that its portions do not go around takes no more than itself. */
function ringBytes(bytes: number): number {
  return Math.min(STAGED_COUNT * stagedPortion(bytes), alignUp(bytes, PAGE_SIZE));
}

/** Bytes of a portion of a payload that is staged. */
function stagedPortion(bytes: number): number {
  return alignUp(Math.max(STAGED_BYTES, Math.ceil(bytes / LINK_COUNT_MAX)), PAGE_SIZE);
}
