// Large messages whose payload stays where it is until the target asks for it. Both sides of one context: as the origin it
// offers payloads (RTS), as the target it has them moved to where the handler says, by a chain of descriptors that pace
// themselves (assembly/chain.ts), or where it can't, because the destination is no region or there is no memory for a chain,
// by copying a slice in each advance.
import {
  BLOCK_SIZE,
  BLOCK_STATUS_OFFSET,
  BLOCK_WINDOWS_OFFSET,
  CONTEXT_WINDOWS_OFFSET,
  DEPTH_MAX,
  LINK_COUNT_MAX,
  LINK_SIZE,
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
  SLICE_BYTES,
  STAGED_COUNT,
  TRANSFER_CANCELED,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_REFUSED,
  WINDOW_ALLOWED_OFFSET,
  WINDOW_BIT_OFFSET,
  WINDOW_BYTES_OFFSET,
  WINDOW_CHAIN_GENERATION_OFFSET,
  WINDOW_CHAIN_INDEX_OFFSET,
  WINDOW_COUNT,
  WINDOW_DEPTH_OFFSET,
  WINDOW_FROM_GENERATION_OFFSET,
  WINDOW_FROM_INDEX_OFFSET,
  WINDOW_FROM_OFFSET_OFFSET,
  WINDOW_GENERATION_OFFSET,
  WINDOW_OWN_GENERATION_OFFSET,
  WINDOW_OWN_INDEX_OFFSET,
  WINDOW_OWN_OFFSET_OFFSET,
  WINDOW_PASSED_OFFSET,
  WINDOW_PEER_GENERATION_OFFSET,
  WINDOW_PEER_INDEX_OFFSET,
  WINDOW_PEER_OFFSET_OFFSET,
  WINDOW_PEER_TASK_OFFSET,
  WINDOW_PEER_WINDOW_OFFSET,
  WINDOW_PORTION_OFFSET,
  WINDOW_RESULT_OFFSET,
  WINDOW_RING_OFFSET,
  WINDOW_SIZE,
  WINDOW_STATUS_OFFSET,
  WINDOW_STOP_OFFSET,
  WINDOW_TO_GENERATION_OFFSET,
  WINDOW_TO_INDEX_OFFSET,
  WINDOW_TO_OFFSET_OFFSET,
  WINDOW_WRONG_OFFSET,
} from "../../assembly/layout.js";
import { alignUp } from "../../assembly/seq.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../memory/map.js";
import { copyInto } from "../support/copy.js";
import type { Base } from "./base.js";
import type { CompletionQueue } from "./completion.js";
import { checkInteger, PamiError, show } from "./error.js";
import type { MemRegion, OpenRegion, RegionTable } from "./memregion.js";
import type { Destination } from "./message.js";
import { CANCELED, type Callback, ERROR, type Result, SHUTDOWN, SUCCESS } from "./result.js";

/** How a target has a payload moved: at its own pace. */
export interface Pacing {
  /** Bytes that are moved for one descriptor (default 262,144); a payload has at most 1,024 such portions. */
  readonly portion?: number | undefined;
  /** Portions that are asked for at a time, 1 to 4 (default 2). */
  readonly depth?: number | undefined;
}

/** What `message.receive` takes. */
export interface ReceiveOptions extends Pacing {
  /** Gives the payload up: it comes to CANCELED, unless all of it is there. */
  readonly signal?: AbortSignal | undefined;
}

const PORTION_BYTES = 262144;
const DEPTH = 2;
/** Of a payload that is staged, where it has no more than LINK_COUNT_MAX of them. */
const STAGED_BYTES = 65536;
/** Payloads of one context that are staged at a time; others go in packets. */
const STAGINGS_MAX = 8;
/** Least portion: a descriptor for fewer bytes costs more than they do. */
export const PORTION_BYTES_MIN = 64;
export const PORTION_BYTES_MAX = 2 ** 30;
/** Payloads offered to one target that it has not taken yet; more wait in the pending queue. */
const OFFERS_MAX = 8;

/** A payload that is offered, or is to be. */
export interface Offer {
  readonly payload: Uint8Array;
  readonly onLocal: Callback;
  readonly onRemote: Callback | undefined;
  readonly cookie: unknown;
  readonly signal: AbortSignal | undefined;
}

/** What a target is offered, as it stands in an RTS. */
export interface Request {
  /** Ordinal of the endpoint that offers it. */
  readonly origin: number;
  /** Of the payload. */
  readonly bytes: number;
  readonly index: number;
  readonly generation: number;
  readonly offset: number;
  readonly blockIndex: number;
  readonly blockGeneration: number;
  readonly place: number;
  readonly window: number;
  /** 0, or it goes through a ring of STAGED_COUNT portions of so many bytes. */
  readonly portion: number;
}

/** A window of this context that is in use. */
interface Window {
  readonly block: Block;
  readonly number: number;
  readonly pointer: number;
  readonly generation: number;
}

/** A transfer, by the window that it has here. */
interface Transfer {
  readonly window: Window;
  /** Ordinal of the endpoint at its other end. */
  readonly peer: number;
  /** What the origin offers; undefined at the target. */
  readonly offer: Offer | undefined;
  /** Where that lies in no region. */
  readonly staging: Staging | undefined;
  readonly destination: Destination | undefined;
  /** The links, at the target. */
  readonly links: MemRegion | undefined;
  /** Takes no notice of a signal any more. */
  readonly forget: () => void;
}

/** The ring through which a payload goes that lies in no region. */
interface Staging {
  readonly region: MemRegion;
  readonly portion: number;
  /** Bytes of the payload that have been copied into it. */
  at: number;
}

interface Block {
  readonly region: MemRegion;
  readonly pointer: number;
  readonly transfers: (Transfer | undefined)[];
}

/** What is copied by this thread, slice by slice. */
interface Pull {
  readonly request: Request;
  readonly destination: Destination;
  at: number;
  isCanceled: boolean;
  forget: () => void;
}

export class Rendezvous {
  /** Transfers that are not over. */
  busy = 0;
  /** Of those, payloads that are offered. */
  offers = 0;
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #block: number;
  /** Of the endpoint of this context. */
  readonly #ordinal: number;
  readonly #completions: CompletionQueue;
  readonly #regions: RegionTable;
  readonly #isEnabled: boolean;
  readonly #portion: number;
  readonly #depth: number;
  readonly #blocks: Block[] = [];
  #pulls: Pull[] = [];
  /** Offers under way, by target. */
  readonly #offered: Uint8Array;
  /** Regions that have held links, and do again. */
  readonly #links: MemRegion[] = [];
  /** Transfers that are staged. */
  readonly #staged: Transfer[] = [];
  /** Regions that have been rings, and are again. */
  readonly #rings: MemRegion[] = [];

  /** @param isShared whether tasks share memory: else no payload can be offered */
  constructor(
    { kernel, memory, map, block, ordinal, completions }: Base,
    regions: RegionTable,
    isShared: boolean,
    pacing: Pacing,
  ) {
    checkPacing(pacing);
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#block = block;
    this.#ordinal = ordinal;
    this.#completions = completions;
    this.#regions = regions;
    this.#isEnabled = isShared;
    this.#portion = pacing.portion ?? PORTION_BYTES;
    this.#depth = pacing.depth ?? DEPTH;
    this.#offered = new Uint8Array(map.tasks * map.contexts);
  }

  // ── Origin ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether payloads can be offered at all. */
  get isEnabled(): boolean {
    return this.#isEnabled;
  }

  /** Whether a payload lies in a region of this task. */
  isInRegion(payload: Uint8Array): boolean {
    return this.#regions.find(payload) !== undefined;
  }

  /** Whether one more payload may be offered to a target now. */
  mayOffer(target: number): boolean {
    return (this.#offered[target] as number) < OFFERS_MAX;
  }

  /** Whether there is memory for one more offer, of this payload. */
  ensure({ payload }: Offer): boolean {
    if (this.#place() === undefined) return false;
    if (this.#regions.find(payload) !== undefined) return true;
    if (this.#staged.length === STAGINGS_MAX) return false;
    const bytes = STAGED_COUNT * stagedPortion(payload.length);
    const last = this.#rings.at(-1);
    if (last !== undefined && last.length >= bytes) return true;
    this.#rings.pop()?.close();
    const ring = this.#region(bytes);
    if (ring !== undefined) this.#rings.push(ring);
    return ring !== undefined;
  }

  /** Writes the RTS of an offer, for which ensure() made sure: the target may take it once that is committed. */
  begin(offer: Offer, target: number, rts: number): void {
    const { words } = this.#memory;
    const { payload, signal } = offer;
    const found = this.#regions.find(payload);
    const portion = found === undefined ? stagedPortion(payload.length) : 0;
    const ring = found === undefined ? (this.#rings.pop() as MemRegion) : undefined;
    const staging = ring && { region: ring, portion, at: 0 };
    const { index, generation } = (found ?? ring) as OpenRegion;
    const window = this.#open(staging === undefined ? NONE : 0) as Window;
    words[(window.pointer + WINDOW_PEER_TASK_OFFSET) >>> 2] = this.#slotOf(target);
    const forget = this.#onAbort(signal, () => this.#stop(window));
    const transfer: Transfer = {
      window,
      peer: target,
      offer,
      staging,
      destination: undefined,
      links: undefined,
      forget,
    };
    this.#enter(transfer);
    if (staging !== undefined) {
      this.#staged.push(transfer);
      this.#stage(transfer);
    }
    this.#offered[target] = (this.#offered[target] as number) + 1;
    this.offers++;
    const { region } = window.block;
    for (const [offset, value] of [
      [RTS_BYTES_OFFSET, payload.length],
      [RTS_INDEX_OFFSET, index],
      [RTS_GENERATION_OFFSET, generation],
      [RTS_OFFSET_OFFSET, found === undefined ? 0 : payload.byteOffset - found.pointer],
      [RTS_BLOCK_INDEX_OFFSET, region.index],
      [RTS_BLOCK_GENERATION_OFFSET, region.generation],
      [RTS_PLACE_OFFSET, window.pointer - window.block.pointer],
      [RTS_PORTION_OFFSET, portion],
      [RTS_WINDOW_OFFSET, window.generation],
    ] as const) {
      words[(rts + offset) >>> 2] = value;
    }
  }

  /** Copies what there is room for of a payload into its ring. */
  #stage({ window: { pointer }, staging, offer }: Transfer): void {
    if (staging === undefined || offer === undefined || this.#isStopped(pointer)) return;
    const { payload } = offer;
    const { region, portion } = staging;
    const before = staging.at;
    // SYNC Y (look): pairs with whoever moves the portions: what is passed may be written over.
    const passed = this.#kernel.loadWord(pointer + WINDOW_PASSED_OFFSET);
    while (staging.at < payload.length && staging.at < (passed + STAGED_COUNT) * portion) {
      const part = payload.subarray(staging.at, staging.at + portion);
      copyInto(region.bytes, ((staging.at / portion) % STAGED_COUNT) * portion, part);
      staging.at += part.length;
    }
    if (staging.at === before) return;
    // SYNC Y (staged): makes the portions visible; pairs with whoever moves them.
    this.#kernel.storeWord(pointer + WINDOW_ALLOWED_OFFSET, Math.ceil(staging.at / portion));
    this.#kernel.ring(this.#slotOfWindow(pointer));
  }

  /** Whether #stage() would copy something. */
  #hasStage({ window: { pointer }, staging, offer }: Transfer): boolean {
    if (staging === undefined || offer === undefined || staging.at === offer.payload.length) return false;
    if (this.#isStopped(pointer)) return false;
    return staging.at < (this.#kernel.loadWord(pointer + WINDOW_PASSED_OFFSET) + STAGED_COUNT) * staging.portion;
  }

  /** Pointer to the task slot at the other end of a window. */
  #slotOfWindow(pointer: number): number {
    return (this.#memory.words[(pointer + WINDOW_PEER_TASK_OFFSET) >>> 2] as number) >>> 0;
  }

  // ── Target ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** What an RTS says. */
  requestAt(rts: number, origin: number): Request {
    const word = (offset: number): number => (this.#memory.words[(rts + offset) >>> 2] as number) >>> 0;
    return {
      origin,
      bytes: word(RTS_BYTES_OFFSET),
      index: word(RTS_INDEX_OFFSET),
      generation: word(RTS_GENERATION_OFFSET),
      offset: word(RTS_OFFSET_OFFSET),
      blockIndex: word(RTS_BLOCK_INDEX_OFFSET),
      blockGeneration: word(RTS_BLOCK_GENERATION_OFFSET),
      place: word(RTS_PLACE_OFFSET),
      window: word(RTS_WINDOW_OFFSET),
      portion: word(RTS_PORTION_OFFSET),
    };
  }

  /** A payload is not wanted, or refused: its origin is told. */
  decline(request: Request, isRefused: boolean): void {
    this.#notice(request, isRefused ? TRANSFER_REFUSED : TRANSFER_DONE);
  }

  /** Has a payload moved to where it goes; the destination is told once all is there, or nothing more comes. */
  receive(request: Request, destination: Destination): void {
    if (this.#moves(request, destination)) return;
    this.busy++;
    const pull: Pull = { request, destination, at: 0, isCanceled: false, forget: () => {} };
    pull.forget = this.#onAbort(destination.options.signal, () => {
      pull.isCanceled = true;
      this.#kernel.ring(this.#slotOf(this.#ordinal));
    });
    this.#pulls.push(pull);
  }

  /** Begins a chain of links; false: it can't be one. */
  #moves(request: Request, destination: Destination): boolean {
    const { job } = this.#map;
    const to = this.#regions.find(destination.bytes);
    if (to === undefined) return false;
    const { portion = this.#portion, depth = this.#depth, signal } = destination.options;
    // What is staged has the portions of its ring.
    const portionBytes = request.portion || Math.max(portion, Math.ceil(request.bytes / LINK_COUNT_MAX));
    const links = this.#linksFor(Math.ceil(request.bytes / portionBytes) * LINK_SIZE);
    const window = links && this.#open(NONE);
    if (links === undefined || window === undefined) {
      if (links !== undefined) this.#links.push(links);
      return false;
    }
    const { words } = this.#memory;
    const { region } = window.block;
    for (const [offset, value] of [
      [WINDOW_PEER_INDEX_OFFSET, request.blockIndex],
      [WINDOW_PEER_GENERATION_OFFSET, request.blockGeneration],
      [WINDOW_PEER_OFFSET_OFFSET, request.place],
      [WINDOW_PEER_WINDOW_OFFSET, request.window],
      [WINDOW_PEER_TASK_OFFSET, this.#slotOf(request.origin)],
      [WINDOW_OWN_INDEX_OFFSET, region.index],
      [WINDOW_OWN_GENERATION_OFFSET, region.generation],
      [WINDOW_OWN_OFFSET_OFFSET, window.pointer - window.block.pointer],
      [WINDOW_FROM_INDEX_OFFSET, request.index],
      [WINDOW_FROM_GENERATION_OFFSET, request.generation],
      [WINDOW_FROM_OFFSET_OFFSET, request.offset],
      [WINDOW_TO_INDEX_OFFSET, to.index],
      [WINDOW_TO_GENERATION_OFFSET, to.generation],
      [WINDOW_TO_OFFSET_OFFSET, destination.bytes.byteOffset - to.pointer],
      [WINDOW_CHAIN_INDEX_OFFSET, links.index],
      [WINDOW_CHAIN_GENERATION_OFFSET, links.generation],
      [WINDOW_BYTES_OFFSET, request.bytes],
      [WINDOW_PORTION_OFFSET, portionBytes],
      [WINDOW_RING_OFFSET, request.portion === 0 ? 0 : STAGED_COUNT],
      [WINDOW_DEPTH_OFFSET, depth],
    ] as const) {
      words[(window.pointer + offset) >>> 2] = value;
    }
    const forget = this.#onAbort(signal, () => this.#stop(window));
    this.#enter({
      window,
      peer: request.origin,
      offer: undefined,
      staging: undefined,
      destination,
      links,
      forget,
    });
    // Where the origin's window is gone, the origin is: its end is about to be told.
    this.#kernel.chainWrite(job, window.pointer);
    return true;
  }

  // ── Both ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether advance() would do something. */
  get hasWork(): boolean {
    if (this.busy === 0) return false;
    if (this.#kernel.chainPeek(this.#block) !== 0) return true;
    return (
      this.#staged.some((transfer) => this.#hasStage(transfer)) ||
      this.#pulls.some((pull) => this.#canPull(pull, this.#windowOf(pull.request)))
    );
  }

  /** One turn of the engine, one slice of each payload that is copied; ends what is over. Returns how many. */
  advance(): number {
    this.#kernel.chainRun(this.#map.job, this.#block);
    for (const transfer of this.#staged) this.#stage(transfer);
    let events = this.#finishAll();
    if (this.#pulls.length > 0) {
      const pulls = this.#pulls;
      this.#pulls = [];
      for (const pull of pulls) {
        if (this.#pull(pull)) events++;
        else this.#pulls.push(pull);
      }
    }
    return events;
  }

  /** Ends the transfers of which it was told that they are over. Returns how many. */
  #finishAll(): number {
    let events = 0;
    for (const block of this.#blocks) {
      const status = block.pointer + BLOCK_STATUS_OFFSET;
      // SYNC K (look): pairs with tell(): what it tells of has happened.
      const bits = this.#kernel.loadWord(status);
      if (bits === 0) continue;
      this.#kernel.clearBits(status, bits);
      for (let left = bits; left !== 0; left &= left - 1) {
        const transfer = block.transfers[31 - Math.clz32(left & -left)];
        if (transfer === undefined) continue;
        events++;
        this.#finish(transfer, this.#resultOf(transfer));
      }
    }
    return events;
  }

  /** An endpoint has ended: so do all transfers with it. */
  ended(ordinal: number): void {
    if (this.busy === 0) return;
    // What came to its end before that is over as it is; and what was told of a window is not for its next transfer.
    this.#finishAll();
    for (const { transfers } of this.#blocks) {
      for (const transfer of transfers) if (transfer?.peer === ordinal) this.#finish(transfer, SHUTDOWN);
    }
    const pulls = this.#pulls;
    this.#pulls = [];
    for (const pull of pulls) {
      if (pull.request.origin === ordinal) this.#ended(pull, SHUTDOWN);
      else this.#pulls.push(pull);
    }
  }

  /** The context closes: its memory goes once nobody can be at it. */
  close(): void {
    this.#kernel.storeWord(this.#block + CONTEXT_WINDOWS_OFFSET, 0);
    for (const { region } of this.#blocks) region.close();
    for (const { transfers } of this.#blocks) {
      for (const transfer of transfers) {
        transfer?.forget();
        transfer?.links?.close();
      }
    }
    for (const { forget } of this.#pulls) forget();
    for (const { staging } of this.#staged) staging?.region.close();
    for (const region of [...this.#links, ...this.#rings]) region.close();
  }

  /** Pointer to the origin's window; 0: it has ended, of which this context is about to be told. */
  #windowOf({ blockIndex, blockGeneration, place, window }: Request): number {
    const { job } = this.#map;
    const pointer = this.#kernel.placeOf(job, blockIndex, blockGeneration, place, WINDOW_SIZE);
    if (pointer === 0) return 0;
    // SYNC V (look): pairs with windowOpen() and windowClose().
    return this.#kernel.loadWord(pointer + WINDOW_GENERATION_OFFSET) >>> 0 === window ? pointer : 0;
  }

  /** Whether #pull() would get anywhere, where the origin's window is. */
  #canPull({ request, at, isCanceled }: Pull, window: number): boolean {
    if (window === 0) return false;
    const kernel = this.#kernel;
    if (isCanceled || this.#isStopped(window)) return true;
    if (request.portion === 0) return true;
    return at < kernel.loadWord(window + WINDOW_ALLOWED_OFFSET) * request.portion;
  }

  /** Copies the next slice of a payload; whether that is over. */
  #pull(pull: Pull): boolean {
    const { request, destination, at } = pull;
    // Looked up once: the origin may close meanwhile.
    const window = this.#windowOf(request);
    if (!this.#canPull(pull, window)) return false;
    const kernel = this.#kernel;
    const { job } = this.#map;
    const isStopped = pull.isCanceled || this.#isStopped(window);
    const { portion } = request;
    const within = portion === 0 ? at : at % portion;
    const most = portion === 0 ? SLICE_BYTES : Math.min(SLICE_BYTES, portion - within);
    const bytes = isStopped ? 0 : Math.min(request.bytes - at, most);
    const place = portion === 0 ? at : (Math.floor(at / portion) % STAGED_COUNT) * portion + within;
    const from = kernel.placeOf(job, request.index, request.generation, (request.offset + place) >>> 0, bytes);
    // Its ring goes behind its window: then its end is about to be told.
    if (from === 0 && this.#windowOf(request) === 0) return false;
    if (from === 0 || isStopped) {
      this.#notice(request, isStopped ? TRANSFER_CANCELED : TRANSFER_REFUSED);
      this.#ended(pull, isStopped ? CANCELED : ERROR);
      return true;
    }
    copyInto(destination.bytes, at, this.#memory.bytes.subarray(from, from + bytes));
    pull.at = at + bytes;
    if (portion !== 0 && pull.at % portion === 0) {
      // SYNC Y (passed): pairs with the origin's core, which stages the next portion in this one's place.
      kernel.storeWord(window + WINDOW_PASSED_OFFSET, pull.at / portion);
      kernel.ring(this.#slotOf(request.origin));
    }
    if (pull.at < request.bytes) return false;
    this.#notice(request, TRANSFER_DONE);
    this.#ended(pull, SUCCESS);
    return true;
  }

  #ended({ destination, forget }: Pull, result: Result): void {
    forget();
    this.#end(destination, result);
  }

  /** Nothing more is moved of a transfer, and all of it is counted as if it were. */
  #stop({ pointer }: Window): void {
    // SYNC Z (stop): pairs with the engines, on either side.
    this.#kernel.storeWord(pointer + WINDOW_STOP_OFFSET, TRANSFER_CANCELED);
    // None of what is passed over has to be staged.
    this.#kernel.storeWord(pointer + WINDOW_ALLOWED_OFFSET, NONE);
    // It may wait for more of that.
    this.#kernel.ring(this.#slotOfWindow(pointer));
  }

  #isStopped(pointer: number): boolean {
    // SYNC Z (look): pairs with #stop(), on either side.
    return this.#kernel.loadWord(pointer + WINDOW_STOP_OFFSET) !== TRANSFER_DONE;
  }

  /** Has a signal heard; what is returned ends that. */
  #onAbort(signal: AbortSignal | undefined, abort: () => void): () => void {
    if (signal === undefined) return () => {};
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    return () => signal.removeEventListener("abort", abort);
  }

  #end({ onComplete, cookie }: Destination, result: Result): void {
    this.busy--;
    if (onComplete !== undefined) this.#completions.push(onComplete, cookie, result);
  }

  #notice({ blockIndex, blockGeneration, place, window, origin }: Request, result: number): void {
    const { job } = this.#map;
    this.#kernel.chainNotice(job, blockIndex, blockGeneration, place, window, this.#slotOf(origin), result);
  }

  #resultOf({ window: { pointer }, offer }: Transfer): Result {
    const offset = offer === undefined ? WINDOW_WRONG_OFFSET : WINDOW_RESULT_OFFSET;
    const result = this.#memory.words[(pointer + offset) >>> 2];
    if (result === TRANSFER_DONE) return SUCCESS;
    if (result === TRANSFER_ENDED) return SHUTDOWN;
    return result === TRANSFER_CANCELED ? CANCELED : ERROR;
  }

  #finish(transfer: Transfer, result: Result): void {
    const { window, offer, destination, staging, links, peer, forget } = transfer;
    forget();
    if (staging !== undefined) {
      this.#staged.splice(this.#staged.indexOf(transfer), 1);
      this.#rings.push(staging.region);
    }
    window.block.transfers[window.number] = undefined;
    this.#kernel.windowClose(window.pointer);
    if (links !== undefined) this.#links.push(links);
    if (destination !== undefined) this.#end(destination, result);
    if (offer === undefined) return;
    this.busy--;
    this.offers--;
    this.#offered[peer] = (this.#offered[peer] as number) - 1;
    const { onLocal, onRemote, cookie } = offer;
    this.#completions.push(onLocal, cookie, result);
    if (onRemote !== undefined) this.#completions.push(onRemote, cookie, result);
  }

  #enter(transfer: Transfer): void {
    const { block, number } = transfer.window;
    block.transfers[number] = transfer;
    this.busy++;
  }

  /** Opens a window that is free; undefined: there is none, and no memory for more. */
  #open(allowed: number): Window | undefined {
    const found = this.#place();
    if (found === undefined) return undefined;
    const { block, number } = found;
    const pointer = block.pointer + BLOCK_WINDOWS_OFFSET + number * WINDOW_SIZE;
    const generation = this.#kernel.windowOpen(pointer, allowed);
    return { block, number, pointer, generation };
  }

  /** Where a window is free. */
  #place(): { readonly block: Block; readonly number: number } | undefined {
    for (const block of this.#blocks) {
      const number = block.transfers.indexOf(undefined);
      if (number >= 0) return { block, number };
    }
    const region = this.#region(BLOCK_SIZE);
    if (region === undefined) return undefined;
    const { words } = this.#memory;
    const pointer = region.bytes.byteOffset;
    region.bytes.fill(0);
    words[pointer >>> 2] = this.#blocks[0]?.pointer ?? 0;
    for (let number = 0; number < WINDOW_COUNT; number++) {
      const window = pointer + BLOCK_WINDOWS_OFFSET + number * WINDOW_SIZE;
      words[(window + WINDOW_STATUS_OFFSET) >>> 2] = pointer + BLOCK_STATUS_OFFSET;
      words[(window + WINDOW_BIT_OFFSET) >>> 2] = 1 << number;
    }
    const block: Block = { region, pointer, transfers: Array.from({ length: WINDOW_COUNT }, () => undefined) };
    this.#blocks.unshift(block);
    // SYNC V (blocks): pairs with chainRun().
    this.#kernel.storeWord(this.#block + CONTEXT_WINDOWS_OFFSET, pointer);
    return { block, number: 0 };
  }

  /** A region that takes the links of a chain. */
  #linksFor(bytes: number): MemRegion | undefined {
    const last = this.#links.pop();
    if (last !== undefined && last.length >= bytes) return last;
    last?.close();
    return this.#region(bytes);
  }

  /** A region of pamir's own; undefined: there is no memory. */
  #region(bytes: number): MemRegion | undefined {
    try {
      return this.#regions.create(bytes, true);
    } catch (error) {
      if (error instanceof PamiError && (error.code === "PAMIR_NO_MEMORY" || error.code === "PAMIR_BUSY"))
        return undefined;
      throw error;
    }
  }

  /** Pointer to the task slot of an endpoint's ordinal. */
  #slotOf(ordinal: number): number {
    return taskSlot(this.#map, Math.floor(ordinal / this.#map.contexts));
  }
}

/** Bytes of a portion of a payload that is staged. */
function stagedPortion(bytes: number): number {
  return alignUp(Math.max(STAGED_BYTES, Math.ceil(bytes / LINK_COUNT_MAX)), PAGE_SIZE);
}

/** @throws PAMIR_INVAL */
export function checkReceive(options: ReceiveOptions): void {
  const { signal } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new PamiError("PAMIR_INVAL", `signal of receive() is ${show(signal)}, not an AbortSignal`);
  }
  checkPacing(options);
}

/** @throws PAMIR_INVAL */
function checkPacing({ portion = PORTION_BYTES, depth = DEPTH }: Pacing): void {
  checkInteger("portion", portion, PORTION_BYTES_MIN, PORTION_BYTES_MAX);
  checkInteger("depth", depth, 1, DEPTH_MAX);
}
