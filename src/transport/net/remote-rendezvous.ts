// Self-pacing transfers between tasks that share no memory. What crosses are the descriptors themselves: windows and links stay
// as they are, each in the memory of its side, and where the engine of shared memory injects into the other window, this one
// sends the descriptors there.
//
//   origin                                               target
//   window: [RGET i, REFILL, MOVE i] …                   window: [FETCH i + 1] …
//                ◄══ BEGIN: its window, origin RGETs ══   chainWrite()
//      RGET      ══ SHIP: an origin RGET, a FETCH ═════►  FETCH
//                ◄══ SHIP: the link that it names ══════     its link
//      MOVE      ══ MOVE: bytes of portion i ══════════►  the destination; its counter
//      NOTICE    ◄══ OVER: the counter is at 0 ═════════
//
// Where the destination is in no region, or there is no memory for a chain, the target's thread asks for slices, and gets them:
// PULL, PULLED. It says that it has all of it by a NOTICE, as in one memory.
//
// A link is asked for behind the bytes of the portion before the last one, so with depth d no more than d + 1 portions are
// on their way: a target that does not advance fetches no link, and its origin has nothing to send. NOTICE waits for OVER,
// since `onRemote` says that all is there.
//
// What comes may be wrong: nothing is written but into an open window of the right peer, and the destination of that.

import {
  AWAY_OVER,
  AWAY_STOPPED,
  AWAY_TOLD,
  BLOCK_NEXT_OFFSET,
  BLOCK_SIZE,
  BLOCK_WINDOWS_OFFSET,
  CHAIN_BEGIN,
  CHAIN_MOVE,
  CHAIN_OVER,
  CHAIN_PULL,
  CHAIN_PULLED,
  CHAIN_SHIP,
  CHAIN_STOP,
  CONTEXT_WINDOWS_OFFSET,
  DEPTH_MAX,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_FETCH,
  DESCRIPTOR_KIND_OFFSET,
  DESCRIPTOR_LOCAL_GENERATION_OFFSET,
  DESCRIPTOR_LOCAL_INDEX_OFFSET,
  DESCRIPTOR_LOCAL_OFFSET_OFFSET,
  DESCRIPTOR_MOVE,
  DESCRIPTOR_NOTICE,
  DESCRIPTOR_REFILL,
  DESCRIPTOR_REMOTE_GENERATION_OFFSET,
  DESCRIPTOR_REMOTE_INDEX_OFFSET,
  DESCRIPTOR_REMOTE_OFFSET_OFFSET,
  DESCRIPTOR_RGET,
  DESCRIPTOR_SHIFT,
  DESCRIPTOR_VALUE_OFFSET,
  DESCRIPTOR_WORDS,
  LINK_SLOTS,
  NONE,
  SLICE_BYTES,
  TRANSFER_CANCELED,
  TRANSFER_DONE,
  TRANSFER_LOCAL_BOUNDS,
  TRANSFER_LOCAL_CLOSED,
  WINDOW_AWAY_OFFSET,
  WINDOW_BIT_OFFSET,
  WINDOW_BYTES_OFFSET,
  WINDOW_COUNT,
  WINDOW_DEPTH_OFFSET,
  WINDOW_GENERATION_OFFSET,
  WINDOW_HEAD_OFFSET,
  WINDOW_LEFT_OFFSET,
  WINDOW_MOVED_OFFSET,
  WINDOW_PASSED_OFFSET,
  WINDOW_PEER_ENDPOINT_OFFSET,
  WINDOW_PEER_INDEX_OFFSET,
  WINDOW_PEER_WINDOW_OFFSET,
  WINDOW_RESULT_OFFSET,
  WINDOW_RGETS_OFFSET,
  WINDOW_SIZE,
  WINDOW_SLOTS,
  WINDOW_SLOTS_OFFSET,
  WINDOW_STATUS_OFFSET,
  WINDOW_STOP_OFFSET,
  WINDOW_TAIL_OFFSET,
  WINDOW_TO_GENERATION_OFFSET,
  WINDOW_TO_INDEX_OFFSET,
  WINDOW_TO_OFFSET_OFFSET,
  WINDOW_WRONG_OFFSET,
} from "../../../assembly/layout.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, type MemoryMap, ordinalOf } from "../../memory/map.js";
import { taskAt } from "../../node/address.js";
import type { OfferPlace, RemotePayloads, TakeSlice, Workspace } from "../transport.js";
import type { Frame } from "./frames.js";
import { remoteResult, resolveRegion } from "./regions.js";
import { WORKSPACE_WINDOW_OFFSET } from "./workspace.js";

type ChainFrame = Extract<Frame, { readonly chain: number }>;

/** Words that name a window: region of its block, that one's generation, offset, its own generation. */
const PLACE_WORDS = 4;
/** Words of a frame behind that. */
const MOVE_WORDS = 5;
const PULL_WORDS = 5;
const PULLED_WORDS = 2;
const BEGIN_WORDS_MAX = PLACE_WORDS + DEPTH_MAX * DESCRIPTOR_WORDS;

/** Descriptors of a window, MOVEs aside, that are processed in one turn, as in the kernels. */
const TURN_SLOTS = 4 * WINDOW_SLOTS;

/** What #find() says of a place that is no window of this task's, or none that is open any more. */
const NOWHERE = -1;
const CLOSED = 0;

/** Bytes that were to be read, or why not: TRANSFER_…. */
interface Read {
  readonly result: number;
  readonly data: Uint8Array | undefined;
}

export class RemoteRendezvous implements RemotePayloads {
  /** This task's client gives it. */
  workspace: Workspace | undefined;
  /** Payloads that are in no region, by window of the origin. */
  readonly sources = new Map<number, Uint8Array>();
  /** Who waits for slices. */
  readonly #pulls = new Map<string, TakeSlice>();
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #task: number;
  readonly #send: (from: number, to: number, frame: Frame) => void;
  readonly #flush: () => void;
  /** Which window of a context is the first in its next turn. */
  #turn = 0;
  /** Bytes that may still be moved in this one. */
  #allowance = 0;

  constructor(
    kernel: Kernel,
    memory: Memory,
    map: MemoryMap,
    task: number,
    send: (from: number, to: number, frame: Frame) => void,
    flush: () => void,
  ) {
    this.#flush = flush;
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#task = task;
    this.#send = send;
  }

  #get(pointer: number, offset: number): number {
    return (this.#memory.words[(pointer + offset) >>> 2] as number) >>> 0;
  }

  #set(pointer: number, offset: number, value: number): void {
    this.#memory.words[(pointer + offset) >>> 2] = value;
  }

  /** Whether a window's other side is in another memory. */
  isAway(window: number): boolean {
    return this.#get(window, WINDOW_AWAY_OFFSET) !== 0;
  }

  /** Windows of a context that are open, and whose other side is in another memory. */
  #windowsOf(ordinal: number): number[] {
    const windows: number[] = [];
    for (let block = this.#firstBlock(ordinal); block !== 0; block = this.#get(block, BLOCK_NEXT_OFFSET)) {
      for (let number = 0; number < WINDOW_COUNT; number++) {
        const window = block + BLOCK_WINDOWS_OFFSET + number * WINDOW_SIZE;
        if (this.isAway(window) && (this.#get(window, WINDOW_GENERATION_OFFSET) & 1) === 1) windows.push(window);
      }
    }
    return windows;
  }

  #firstBlock(ordinal: number): number {
    return this.#get(contextBlock(this.#map, ordinal), CONTEXT_WINDOWS_OFFSET);
  }

  /** The block of a context in which a pointer is; 0: none. */
  #blockOf(ordinal: number, pointer: number): number {
    let block = this.#firstBlock(ordinal);
    while (block !== 0 && (pointer < block || pointer >= block + BLOCK_SIZE)) {
      block = this.#get(block, BLOCK_NEXT_OFFSET);
    }
    return block;
  }

  /** Ordinals of this task's contexts. */
  get #own(): number[] {
    return Array.from({ length: this.#map.contexts }, (_, context) => ordinalOf(this.#map, this.#task, context));
  }

  // ── Cores ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Target core: as `chainWrite` of the kernels, and the origin is told. */
  write(window: number): number {
    const { workspace } = this;
    const from = this.#own.find((ordinal) => this.#blockOf(ordinal, window) !== 0);
    if (workspace === undefined || from === undefined) return 0;
    // The kernel writes what is the origin's into the workspace's window.
    const there = this.#take(window, WINDOW_PEER_INDEX_OFFSET, PLACE_WORDS);
    const standIn = workspace.bytes.byteOffset + WORKSPACE_WINDOW_OFFSET;
    this.#set(standIn, WINDOW_GENERATION_OFFSET, 1);
    this.#put(window, WINDOW_PEER_INDEX_OFFSET, [workspace.index, workspace.generation, WORKSPACE_WINDOW_OFFSET, 1]);
    const links = this.#kernel.chainWrite(this.#map.job, window);
    this.#put(window, WINDOW_PEER_INDEX_OFFSET, there);
    if (links === 0) return 0;
    const depth = this.#get(window, WINDOW_DEPTH_OFFSET);
    const words = [...this.#take(standIn, WINDOW_PEER_INDEX_OFFSET, PLACE_WORDS)];
    for (let rget = 0; rget < depth && rget + depth < links; rget++) {
      words.push(...this.#take(standIn, WINDOW_RGETS_OFFSET + (rget << DESCRIPTOR_SHIFT), DESCRIPTOR_WORDS));
    }
    this.#tell(window, from, CHAIN_BEGIN, words);
    this.#flush();
    return links;
  }

  /** Target core: as `chainNotice` of the kernels. `place` names the origin's window. */
  notice(place: readonly number[], origin: number, result: number): number {
    const descriptor = new Array<number>(DESCRIPTOR_WORDS).fill(0);
    descriptor[DESCRIPTOR_KIND_OFFSET >>> 2] = DESCRIPTOR_NOTICE;
    descriptor[DESCRIPTOR_BYTES_OFFSET >>> 2] = result;
    // From whichever context: what counts is whose it is.
    const from = ordinalOf(this.#map, this.#task, 0);
    const words = Int32Array.from([...place, ...descriptor]);
    this.#send(from, origin, { chain: CHAIN_SHIP, words, data: undefined });
    this.#flush();
    return 1;
  }

  /** Target core: asks for a slice of a payload; `take` gets it. `from` is its own endpoint. */
  pull(from: number, offered: OfferPlace, at: number, bytes: number, take: TakeSlice): void {
    const { origin, index, generation, offset, blockIndex, blockGeneration, place, window } = offered;
    const named = [blockIndex, blockGeneration, place, window];
    this.#pulls.set(this.#keyOf(origin, named), take);
    const words = Int32Array.of(...named, index, generation, offset + at, bytes, at);
    this.#send(from, origin, { chain: CHAIN_PULL, words, data: undefined });
    this.#flush();
  }

  /** Target core: nothing more of a payload is waited for. */
  forget({ origin, blockIndex, blockGeneration, place, window }: OfferPlace): void {
    this.#pulls.delete(this.#keyOf(origin, [blockIndex, blockGeneration, place, window]));
  }

  /** Names an origin's window among all that there are. */
  #keyOf(origin: number, place: readonly number[]): string {
    return [taskAt(this.#map, origin), ...place.map((word) => word >>> 0)].join(" ");
  }

  /** Target core: those of its transfers with an endpoint that it has given up are told there. */
  stop(origin: number): void {
    for (const from of this.#own) {
      for (const window of this.#windowsOf(from)) {
        const away = this.#get(window, WINDOW_AWAY_OFFSET);
        const isStopped = this.#get(window, WINDOW_STOP_OFFSET) !== TRANSFER_DONE;
        const isTarget = this.#get(window, WINDOW_DEPTH_OFFSET) !== 0;
        if (!isStopped || !isTarget || (away & AWAY_TOLD) !== 0) continue;
        if (this.#get(window, WINDOW_PEER_ENDPOINT_OFFSET) !== origin) continue;
        this.#set(window, WINDOW_AWAY_OFFSET, away | AWAY_TOLD);
        this.#tell(window, from, CHAIN_STOP, []);
      }
    }
    this.#flush();
  }

  #take(pointer: number, offset: number, count: number): Int32Array {
    const at = (pointer + offset) >>> 2;
    return this.#memory.words.slice(at, at + count);
  }

  #put(pointer: number, offset: number, words: ArrayLike<number>): void {
    this.#memory.words.set(words, (pointer + offset) >>> 2);
  }

  /** Sends a frame to a window's other side. */
  #tell(window: number, from: number, chain: number, words: ArrayLike<number>, data?: Uint8Array): void {
    const all = new Int32Array(PLACE_WORDS + words.length);
    all.set(this.#take(window, WINDOW_PEER_INDEX_OFFSET, PLACE_WORDS));
    all.set(words, PLACE_WORDS);
    this.#send(from, this.#get(window, WINDOW_PEER_ENDPOINT_OFFSET), { chain, words: all, data });
  }

  // ── Engine ────────────────────────────────────────────────────────────────────────────────────────────────────

  #slotAt(window: number, position: number): number {
    return window + WINDOW_SLOTS_OFFSET + ((position & (WINDOW_SLOTS - 1)) << DESCRIPTOR_SHIFT);
  }

  /** Whether a context's windows have something that can be processed. */
  hasWork(ordinal: number): boolean {
    return this.#windowsOf(ordinal).some((window) => {
      const head = this.#get(window, WINDOW_HEAD_OFFSET);
      return head !== this.#get(window, WINDOW_TAIL_OFFSET) && !this.#isHeld(window, this.#slotAt(window, head));
    });
  }

  /** As `chainRun` of the kernels, for the windows whose other side is in another memory. */
  run(ordinal: number, most: number): number {
    const windows = this.#windowsOf(ordinal);
    if (windows.length === 0) return 0;
    this.#allowance = most;
    let remaining = 0;
    const first = this.#turn++ % windows.length;
    for (let i = 0; i < windows.length; i++) {
      const window = windows[(first + i) % windows.length] as number;
      if (this.#runWindow(window, ordinal)) remaining++;
    }
    this.#flush();
    return remaining;
  }

  /** Processes what is in a window, as far as it may; whether something is left that could be. */
  #runWindow(window: number, ordinal: number): boolean {
    let others = TURN_SLOTS;
    let head = this.#get(window, WINDOW_HEAD_OFFSET);
    const tail = this.#get(window, WINDOW_TAIL_OFFSET);
    while (head !== tail) {
      const descriptor = this.#slotAt(window, head);
      if (this.#isHeld(window, descriptor)) break;
      if (this.#get(descriptor, DESCRIPTOR_KIND_OFFSET) === DESCRIPTOR_MOVE) {
        const left = this.#get(descriptor, DESCRIPTOR_BYTES_OFFSET) - this.#get(window, WINDOW_MOVED_OFFSET);
        const part = Math.min(left, SLICE_BYTES);
        if (part > this.#allowance) return true;
        this.#allowance -= part;
        if (!this.#move(window, ordinal, descriptor, part)) continue;
      } else {
        if (others-- === 0) return true;
        this.#process(window, ordinal, descriptor);
      }
      head = (head + 1) >>> 0;
      this.#set(window, WINDOW_HEAD_OFFSET, head);
    }
    return false;
  }

  /** Whether a descriptor has to wait: the last one, until the other side has said that all is there. */
  #isHeld(window: number, descriptor: number): boolean {
    if (this.#get(descriptor, DESCRIPTOR_KIND_OFFSET) !== DESCRIPTOR_NOTICE) return false;
    const hasBegun = this.#get(window, WINDOW_PEER_WINDOW_OFFSET) !== 0;
    return hasBegun && (this.#get(window, WINDOW_AWAY_OFFSET) & AWAY_OVER) === 0;
  }

  /** As `windowClear` of the kernels: a last descriptor that has to wait tells of nothing yet. */
  clear(window: number): number {
    const head = this.#get(window, WINDOW_HEAD_OFFSET);
    const isHeld = this.#isHeld(window, this.#slotAt(window, head));
    const isOver = this.#kernel.windowClear(window);
    return isHeld ? 0 : isOver;
  }

  /** Sends a slice of a portion, or says why not; whether the portion is over. */
  #move(window: number, ordinal: number, descriptor: number, part: number): boolean {
    const bytes = this.#get(descriptor, DESCRIPTOR_BYTES_OFFSET);
    const moved = this.#get(window, WINDOW_MOVED_OFFSET);
    const index = this.#get(descriptor, DESCRIPTOR_LOCAL_INDEX_OFFSET);
    const generation = this.#get(descriptor, DESCRIPTOR_LOCAL_GENERATION_OFFSET);
    const from = this.#get(descriptor, DESCRIPTOR_LOCAL_OFFSET_OFFSET) + moved;
    const { result, data } = this.#read(window, index, generation, from, part);
    const isLast = result !== TRANSFER_DONE || moved + part === bytes;
    const to = this.#take(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET, 2);
    const offset = this.#get(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET) + moved;
    if (this.#get(window, WINDOW_PEER_WINDOW_OFFSET) !== 0) {
      this.#tell(window, ordinal, CHAIN_MOVE, [...to, offset, result, isLast ? bytes : 0], data);
    }
    this.#note(window, WINDOW_RESULT_OFFSET, result);
    this.#set(window, WINDOW_MOVED_OFFSET, isLast ? 0 : moved + part);
    // For the dump: nothing is staged for another memory.
    if (isLast) this.#set(window, WINDOW_PASSED_OFFSET, this.#get(window, WINDOW_PASSED_OFFSET) + 1);
    return isLast;
  }

  /** Bytes of a payload, or why there are none. */
  #read(window: number, index: number, generation: number, offset: number, bytes: number): Read {
    const stop = this.#stopOf(window);
    if (stop !== TRANSFER_DONE) return { result: stop, data: undefined };
    if (index !== NONE) {
      const { result, pointer } = resolveRegion(this.#memory, this.#map, index, generation, offset, bytes);
      const data = result === TRANSFER_DONE ? this.#memory.bytes.slice(pointer, pointer + bytes) : undefined;
      return { result, data };
    }
    const source = this.sources.get(window);
    if (source === undefined) return { result: TRANSFER_LOCAL_CLOSED, data: undefined };
    if (offset + bytes > source.length) return { result: TRANSFER_LOCAL_BOUNDS, data: undefined };
    return { result: TRANSFER_DONE, data: source.slice(offset, offset + bytes) };
  }

  /** TRANSFER_DONE, or why nothing more is moved through a window. */
  #stopOf(window: number): number {
    const stop = this.#get(window, WINDOW_STOP_OFFSET);
    if (stop !== TRANSFER_DONE) return stop;
    return (this.#get(window, WINDOW_AWAY_OFFSET) & AWAY_STOPPED) === 0 ? TRANSFER_DONE : TRANSFER_CANCELED;
  }

  /** Notes what came of a transfer, if nothing has yet. */
  #note(window: number, offset: number, result: number): void {
    if (this.#get(window, offset) === TRANSFER_DONE) this.#set(window, offset, result);
  }

  /** Sets a window's bit in the status register of its block. */
  #signal(window: number): void {
    const status = this.#get(window, WINDOW_STATUS_OFFSET);
    this.#set(status, 0, this.#get(status, 0) | this.#get(window, WINDOW_BIT_OFFSET));
  }

  /** Processes a descriptor that is no MOVE. */
  #process(window: number, ordinal: number, descriptor: number): void {
    const kind = this.#get(descriptor, DESCRIPTOR_KIND_OFFSET);
    if (kind === DESCRIPTOR_NOTICE) {
      this.#note(window, WINDOW_RESULT_OFFSET, this.#get(descriptor, DESCRIPTOR_BYTES_OFFSET));
      this.#signal(window);
    } else if (kind === DESCRIPTOR_FETCH) {
      const slots = this.#get(descriptor, DESCRIPTOR_BYTES_OFFSET);
      if (slots > LINK_SLOTS) return;
      const { result, pointer } = resolveRegion(
        this.#memory,
        this.#map,
        this.#get(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET),
        this.#get(descriptor, DESCRIPTOR_REMOTE_GENERATION_OFFSET),
        this.#get(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET),
        slots << DESCRIPTOR_SHIFT,
      );
      if (result === TRANSFER_DONE && (pointer & 3) === 0) this.#ship(window, ordinal, pointer, slots);
    } else {
      const number = this.#get(descriptor, DESCRIPTOR_VALUE_OFFSET);
      if (number >= DEPTH_MAX) return;
      const rget = window + WINDOW_RGETS_OFFSET + (number << DESCRIPTOR_SHIFT);
      if (kind === DESCRIPTOR_RGET) this.#ship(window, ordinal, rget, 1);
      else if (kind === DESCRIPTOR_REFILL) {
        const words = (DESCRIPTOR_VALUE_OFFSET - DESCRIPTOR_BYTES_OFFSET) >>> 2;
        this.#put(rget, DESCRIPTOR_BYTES_OFFSET, this.#take(descriptor, DESCRIPTOR_BYTES_OFFSET, words));
      }
    }
  }

  #ship(window: number, ordinal: number, pointer: number, slots: number): void {
    if (this.#get(window, WINDOW_PEER_WINDOW_OFFSET) === 0) return;
    const words: number[] = [];
    for (let slot = 0; slot < slots; slot++) {
      words.push(...this.#take(pointer, slot << DESCRIPTOR_SHIFT, DESCRIPTOR_WORDS));
    }
    this.#tell(window, ordinal, CHAIN_SHIP, words);
  }

  // ── What comes ────────────────────────────────────────────────────────────────────────────────────────────────

  /** A frame has come for a context of this task. False: it can't be right. What comes too late is. */
  onFrame(from: number, to: number, { chain, words, data }: ChainFrame): boolean {
    const bringsData = chain === CHAIN_MOVE || chain === CHAIN_PULLED;
    if (words.length < PLACE_WORDS || (data !== undefined && !bringsData)) return false;
    if (chain === CHAIN_PULLED) return this.#pulled(from, words, data);
    const window = this.#find(from, to, words);
    if (window === CLOSED || window === NOWHERE) return window === CLOSED;
    const said = words.subarray(PLACE_WORDS);
    if (chain === CHAIN_SHIP) return this.#shipped(window, said);
    const isTarget = this.#get(window, WINDOW_DEPTH_OFFSET) !== 0;
    if (chain === CHAIN_MOVE) return isTarget && this.#moved(window, to, said, data);
    if (isTarget) return false;
    const hasBegun = this.#get(window, WINDOW_PEER_WINDOW_OFFSET) !== 0;
    if (chain === CHAIN_PULL) return !hasBegun && this.#sent(window, to, from, words);
    if (chain === CHAIN_BEGIN) return !hasBegun && this.#begun(window, said);
    const away = this.#get(window, WINDOW_AWAY_OFFSET);
    if (chain === CHAIN_STOP && hasBegun && said.length === 0) {
      this.#set(window, WINDOW_AWAY_OFFSET, away | AWAY_STOPPED);
      return true;
    }
    if (chain !== CHAIN_OVER || !hasBegun || said.length !== 1) return false;
    this.#note(window, WINDOW_RESULT_OFFSET, said[0] as number);
    this.#set(window, WINDOW_AWAY_OFFSET, away | AWAY_OVER);
    return true;
  }

  /** The window that words name, of a context and for a peer; CLOSED, NOWHERE. */
  #find(from: number, to: number, words: Int32Array): number {
    const [index = 0, generation = 0, offset = 0, own = 0] = words;
    const first = offset >>> 0;
    if ((own & 1) === 0 || first < BLOCK_WINDOWS_OFFSET || (first - BLOCK_WINDOWS_OFFSET) % WINDOW_SIZE !== 0) {
      return NOWHERE;
    }
    const place = resolveRegion(this.#memory, this.#map, index >>> 0, generation >>> 0, first, WINDOW_SIZE);
    if (place.result !== TRANSFER_DONE) return CLOSED;
    const window = place.pointer;
    if (this.#blockOf(to, window) + first !== window) return NOWHERE;
    if (this.#get(window, WINDOW_GENERATION_OFFSET) !== own >>> 0) return CLOSED;
    const peer = this.#get(window, WINDOW_PEER_ENDPOINT_OFFSET);
    const isPeer = taskAt(this.#map, peer) === taskAt(this.#map, from);
    return isPeer && this.isAway(window) ? window : NOWHERE;
  }

  #begun(window: number, words: Int32Array): boolean {
    const rgets = words.subarray(PLACE_WORDS);
    if (words.length < PLACE_WORDS || words.length > BEGIN_WORDS_MAX || rgets.length % DESCRIPTOR_WORDS !== 0)
      return false;
    if (((words[PLACE_WORDS - 1] as number) & 1) === 0) return false;
    this.#put(window, WINDOW_PEER_INDEX_OFFSET, words.subarray(0, PLACE_WORDS));
    for (let at = 0, rget = 0; at < rgets.length; at += DESCRIPTOR_WORDS, rget++) {
      this.#put(window, WINDOW_RGETS_OFFSET + (rget << DESCRIPTOR_SHIFT), rgets.subarray(at, at + DESCRIPTOR_WORDS));
    }
    return true;
  }

  #shipped(window: number, words: Int32Array): boolean {
    const tail = this.#get(window, WINDOW_TAIL_OFFSET);
    const used = (tail - this.#get(window, WINDOW_HEAD_OFFSET)) >>> 0;
    const count = words.length / DESCRIPTOR_WORDS;
    if (count === 0 || !Number.isInteger(count) || used + count > WINDOW_SLOTS) return false;
    for (let slot = 0; slot < count; slot++) {
      const at = slot * DESCRIPTOR_WORDS;
      this.#put(this.#slotAt(window, tail + slot), 0, words.subarray(at, at + DESCRIPTOR_WORDS));
    }
    this.#set(window, WINDOW_TAIL_OFFSET, tail + count);
    return true;
  }

  /** Bytes of a portion, or why there are none. */
  #moved(window: number, ordinal: number, words: Int32Array, data: Uint8Array | undefined): boolean {
    const [index = 0, generation = 0, offset = 0, said = 0, over = 0] = words;
    const [left, count] = [this.#get(window, WINDOW_LEFT_OFFSET), over >>> 0];
    const isDone = said === TRANSFER_DONE;
    if (words.length !== MOVE_WORDS || count > left || isDone !== (data !== undefined)) return false;
    const isThere =
      index === (this.#get(window, WINDOW_TO_INDEX_OFFSET) | 0) &&
      generation === (this.#get(window, WINDOW_TO_GENERATION_OFFSET) | 0);
    const at = (offset >>> 0) - this.#get(window, WINDOW_TO_OFFSET_OFFSET);
    if (!isThere || at < 0 || at + (data?.length ?? 0) > this.#get(window, WINDOW_BYTES_OFFSET)) return false;
    const stop = data === undefined ? said : this.#stopOf(window);
    const result = stop === TRANSFER_DONE && data !== undefined ? this.#write(window, at, data) : stop;
    this.#note(window, WINDOW_WRONG_OFFSET, result);
    this.#set(window, WINDOW_LEFT_OFFSET, left - count);
    if (count === 0 || left > count) return true;
    this.#signal(window);
    this.#tell(window, ordinal, CHAIN_OVER, [this.#get(window, WINDOW_WRONG_OFFSET)]);
    return true;
  }

  /** Writes bytes into a window's destination: TRANSFER_…. */
  #write(window: number, at: number, data: Uint8Array): number {
    const index = this.#get(window, WINDOW_TO_INDEX_OFFSET);
    const generation = this.#get(window, WINDOW_TO_GENERATION_OFFSET);
    const offset = this.#get(window, WINDOW_TO_OFFSET_OFFSET) + at;
    const { result, pointer } = resolveRegion(this.#memory, this.#map, index, generation, offset, data.length);
    if (result === TRANSFER_DONE) this.#memory.bytes.set(data, pointer);
    return remoteResult(result);
  }

  /** Somebody asks for a slice of a payload that was offered to him. */
  #sent(window: number, from: number, to: number, words: Int32Array): boolean {
    const [index = 0, generation = 0, offset = 0, count = 0, at = 0] = words.subarray(PLACE_WORDS);
    const bytes = count >>> 0;
    if (words.length !== PLACE_WORDS + PULL_WORDS || bytes > SLICE_BYTES) return false;
    const { result, data } = this.#read(window, index >>> 0, generation >>> 0, offset >>> 0, bytes);
    const answer = Int32Array.of(...words.subarray(0, PLACE_WORDS), at, result);
    this.#send(from, to, { chain: CHAIN_PULLED, words: answer, data });
    return true;
  }

  /** A slice that was asked for. One that nobody waits for any more is as good as any. */
  #pulled(from: number, words: Int32Array, data: Uint8Array | undefined): boolean {
    const [at = 0, result = 0] = words.subarray(PLACE_WORDS);
    if (words.length !== PLACE_WORDS + PULLED_WORDS || (result === TRANSFER_DONE) !== (data !== undefined))
      return false;
    const take = this.#pulls.get(this.#keyOf(from, [...words.subarray(0, PLACE_WORDS)]));
    return take === undefined || take(at >>> 0, result, data);
  }
}
