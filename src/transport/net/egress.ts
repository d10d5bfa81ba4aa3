// Egress: takes the records of the node's contexts out of the blocks that stand for tasks of other nodes. It sends newly
// committed records in one frame for each pair of contexts. CREDIT_BYTES may be on their way for a pair. Then its lane is
// not read until the target gives some back.
//
// A turn looks at the blocks of all bound slots. So a frame that comes causes no turn, and a credit in it a look at one block.

import {
  ADVANCE_EVENTS_MASK,
  CONTEXT_EVENTS_OFFSET,
  CONTEXT_NOTICE_SEEN_OFFSET,
  CONTEXT_READY_OFFSET,
  EVENT_SIZE,
  KIND_FIRST,
  KIND_MESSAGE,
  KIND_MORE,
  NONE,
  RECORD_KIND_MASK,
  RECORD_KIND_SHIFT,
  RECORD_LENGTH_MASK,
  TASK_CLOSED,
  TASK_NOTICE_OFFSET,
  TASK_STATE_OFFSET,
} from "../../../assembly/layout.js";
import { type Endpoint, taskOf } from "../../core/endpoint.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, engineSlot, isClosed, type MemoryMap, taskSlot } from "../../memory/map.js";
import { endpointCount, type SlotTable, taskAt } from "../../node/address.js";
import type { FrameScratch } from "./frame-buffers.js";
import type { Frame, SendFrame } from "./frames.js";
import { CREDIT_BYTES, isSwitch, PREFIX_BYTES, putPrefix, putRecord, recordBytes } from "./records.js";

const EVENT_WORDS = EVENT_SIZE >>> 2;
/** Words of an event: pointer to the body, and ordinal of the origin. */
const EVENT_BODY = 2;
const EVENT_ORIGIN = 3;
const NO_ORIGIN = -1;
/**
 * Bytes of a frame of several records. The target's agent works on a frame as a whole, while the packets of the next one
 * are on their way.
 */
const FRAME_BYTES = 65536;
/** Bytes of a body from which a record has a frame of its own, into which the body is not copied. */
const LONG_BYTES = 32_768;

export class Egress {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: SlotTable;
  readonly #endpoints: number;
  /** Ordinals of own contexts are below it. */
  readonly #own: number;
  readonly #send: SendFrame;
  readonly #scratch: FrameScratch;
  /** By own endpoint, then by target: bytes of records on their way. They outlive the target's slot. */
  readonly #inFlight = new Map<Endpoint, Map<Endpoint, number>>();
  /** Pairs whose lane is not read, because their credit is used up. */
  readonly #heldBack = new Set<number>();

  constructor(
    kernel: Kernel,
    memory: Memory,
    map: MemoryMap,
    addresses: SlotTable,
    send: SendFrame,
    scratch: FrameScratch,
  ) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#addresses = addresses;
    this.#endpoints = endpointCount(map);
    this.#own = map.locals * map.contexts;
    this.#send = send;
    this.#scratch = scratch;
  }

  /**
   * Takes back credit for bytes that have gone into the target's lanes, and sends what lacked it. False: fewer bytes were on
   * their way.
   */
  credited(from: Endpoint, to: Endpoint, bytes: number): boolean {
    const targets = this.#inFlight.get(from);
    const inFlight = targets?.get(to) ?? 0;
    if (targets === undefined || bytes > inFlight) return false;
    if (inFlight > bytes) targets.set(to, inFlight - bytes);
    else targets.delete(to);
    const [origin, target] = [this.#addresses.ordinalOf(from), this.#addresses.ordinalOf(to)];
    if (target < 0 || inFlight - bytes >= CREDIT_BYTES) return true;
    const pair = this.#pairOf(origin, target);
    if (!this.#heldBack.has(pair)) return true;
    this.#readAgain(pair);
    this.#flushBlock(target, NO_ORIGIN);
    return true;
  }

  /** A task has ended: it gives back no more credit. */
  ended(task: number): void {
    for (const targets of this.#inFlight.values()) {
      for (const to of targets.keys()) if (taskOf(to) === task) targets.delete(to);
    }
  }

  /** An ordinal stands for another endpoint from now on. */
  forget(target: number): void {
    for (let origin = 0; origin < this.#own; origin++) {
      this.#heldBack.delete(this.#pairOf(origin, target));
    }
  }

  /** Whether lanes to a target hold records: such that lack credit, or `hasAny`: any. */
  isBusy(target: number, hasAny: boolean): boolean {
    for (let origin = 0; origin < this.#own; origin++) {
      if (this.#heldBack.has(this.#pairOf(origin, target))) return true;
    }
    return (
      hasAny && this.#hasSome(contextBlock(this.#map, target)) && this.#peek(contextBlock(this.#map, target)) !== 0
    );
  }

  /** Bytes on their way from an origin to a target. */
  #onTheirWay(origin: number, target: number): number {
    return this.#inFlight.get(this.#addresses.endpointAt(origin))?.get(this.#addresses.endpointAt(target)) ?? 0;
  }

  #sent(from: Endpoint, to: Endpoint, bytes: number): void {
    let targets = this.#inFlight.get(from);
    if (targets === undefined) {
      targets = new Map();
      this.#inFlight.set(from, targets);
    }
    targets.set(to, (targets.get(to) ?? 0) + bytes);
  }

  #readAgain(pair: number): void {
    this.#heldBack.delete(pair);
    const block = contextBlock(this.#map, pair % this.#endpoints);
    const origin = Math.floor(pair / this.#endpoints);
    if (this.#kernel.laneOf(block, origin) !== 0) this.#kernel.laneResume(block, origin);
  }

  /** Sends committed records, as far as the credit goes. Returns whether there were any. */
  turn(): boolean {
    return this.#flush(NO_ORIGIN);
  }

  /** Sends all committed records of an origin, even beyond its credit. */
  flushAllOf(origin: number): void {
    for (const pair of this.#heldBack) if (Math.floor(pair / this.#endpoints) === origin) this.#readAgain(pair);
    this.#flush(origin);
  }

  /** Whether turn() would find something. */
  get hasWork(): boolean {
    for (let target = this.#own; target < this.#endpoints; target++) {
      const block = contextBlock(this.#map, target);
      // Records for a target that has ended stay in the lane, until their origin takes the lane back.
      if (this.#isReady(target, block) && this.#peek(block) !== 0) return true;
    }
    return false;
  }

  /** Whether a lane to a block is to be attended: most blocks have none. Only own contexts have lanes to it. */
  #hasSome(block: number): boolean {
    for (let word = 0; word << 5 < this.#own; word++) {
      // SYNC ready (look): pairs with publish() of the kernels.
      if (this.#kernel.loadWord(block + CONTEXT_READY_OFFSET + (word << 2)) !== 0) return true;
    }
    return false;
  }

  /** Whether a block stands for a target that goes on, and a lane to it is to be attended. */
  #isReady(target: number, block: number): boolean {
    return this.#addresses.table[target] !== NONE && this.#hasSome(block) && !this.#isOver(target);
  }

  /** As peek() of the kernels: whether a block has records. The agent sees notices in another way. */
  #peek(block: number): number {
    const notice = this.#kernel.loadWord(engineSlot(this.#map) + TASK_NOTICE_OFFSET);
    this.#memory.words[(block + CONTEXT_NOTICE_SEEN_OFFSET) >>> 2] = notice;
    return this.#kernel.peek(block);
  }

  #isOver(target: number): boolean {
    const slot = taskSlot(this.#map, taskAt(this.#map, target));
    // SYNC task-state (look): the agent itself marks tasks of other nodes as ended.
    if (this.#kernel.loadWord(slot + TASK_STATE_OFFSET) >= TASK_CLOSED) return true;
    return isClosed(this.#kernel, this.#map, target);
  }

  /** @param ending origin whose records are sent even beyond its credit */
  #flush(ending: number): boolean {
    let hasSent = false;
    for (let target = this.#own; target < this.#endpoints; target++) {
      if (this.#flushBlock(target, ending)) hasSent = true;
    }
    return hasSent;
  }

  /** As #flush(), for the block of one target. */
  #flushBlock(target: number, ending: number): boolean {
    const block = contextBlock(this.#map, target);
    if (!this.#isReady(target, block)) return false;
    let hasSent = false;
    for (;;) {
      const count = this.#kernel.advance(block, 1) & ADVANCE_EVENTS_MASK;
      if (count === 0) break;
      hasSent = true;
      this.#sendBatch(block, count, target, ending);
    }
    this.#peek(block); // frees the taken records
    return hasSent;
  }

  /** Sends a batch of events of a block and takes their records, except those of pairs that are held back now. */
  #sendBatch(block: number, count: number, target: number, ending: number): void {
    const { words } = this.#memory;
    const first = (block + CONTEXT_EVENTS_OFFSET) >>> 2;
    const end = first + count * EVENT_WORDS;
    const origins = new Set<number>();
    const switches: number[] = [];
    for (let event = first; event < end; event += EVENT_WORDS) {
      const origin = words[event + EVENT_ORIGIN] as number;
      if (!origins.has(origin)) {
        const pair = this.#pairOf(origin, target);
        if (this.#heldBack.has(pair)) continue;
        if (origin !== ending && this.#onTheirWay(origin, target) >= CREDIT_BYTES) {
          this.#heldBack.add(pair);
          this.#kernel.lanePause(this.#kernel.laneOf(block, origin), words[event + EVENT_BODY] as number);
          continue;
        }
        origins.add(origin);
      }
      if (isSwitch(words[event] as number)) switches.push(origin, this.#word(words[event + EVENT_BODY] as number));
    }
    for (const origin of origins) this.#sendRecords(origin, target, first, end);
    this.#kernel.release(block);
    for (let i = 0; i < switches.length; i += 2) {
      this.#kernel.laneSwitch(this.#map.job, block, switches[i] as number, switches[i + 1] as number);
    }
  }

  /** Sends the records of an origin among events, in frames of FRAME_BYTES or one record. */
  #sendRecords(origin: number, target: number, first: number, end: number): void {
    const { words } = this.#memory;
    let begin = first;
    let size = 0;
    for (let event = first; event < end; event += EVENT_WORDS) {
      if (words[event + EVENT_ORIGIN] !== origin) continue;
      const more = this.#sizeOf(event);
      const isLong = this.#isLong(event);
      if (isLong || size + more > FRAME_BYTES) {
        this.#sendCopied(origin, target, begin, event, size);
        begin = event;
        size = 0;
      }
      if (isLong) {
        this.#sendFrame(origin, target, this.#longFrame(event), more);
        begin = event + EVENT_WORDS;
      } else size += more;
    }
    this.#sendCopied(origin, target, begin, end, size);
  }

  /** Sends a frame of the records of an origin among events, which take so many bytes. */
  #sendCopied(origin: number, target: number, first: number, end: number, bytes: number): void {
    if (bytes === 0) return;
    const records = this.#scratch.take(bytes);
    this.#fill(records, origin, first, end);
    this.#sendFrame(origin, target, { records }, bytes);
  }

  #sendFrame(origin: number, target: number, frame: Frame, bytes: number): void {
    const [from, to] = [this.#addresses.endpointAt(origin), this.#addresses.endpointAt(target)];
    this.#sent(from, to, bytes);
    this.#send(from, to, frame);
  }

  /** Whether the body of an event's record goes out of the lane as it is. Its padding would be bytes of earlier records. */
  #isLong(event: number): boolean {
    const commit = this.#memory.words[event] as number;
    const length = commit & RECORD_LENGTH_MASK;
    const kind = (commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK;
    return (
      length >= LONG_BYTES && length % 4 === 0 && (kind === KIND_MORE || kind === KIND_FIRST || kind === KIND_MESSAGE)
    );
  }

  #longFrame(event: number): Frame {
    const { words, bytes } = this.#memory;
    const commit = words[event] as number;
    const body = (words[event + EVENT_BODY] as number) >>> 0;
    const length = commit & RECORD_LENGTH_MASK;
    const records = this.#scratch.take(PREFIX_BYTES);
    const kind = (commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK;
    putPrefix(new Int32Array(records.buffer), 0, kind, words[event + 1] as number, length);
    return { records, body: bytes.subarray(body, body + length) };
  }

  /** Bytes of an event's record in a frame. The other side replaces its lanes by itself: only the end of a lane is sent. */
  #sizeOf(event: number): number {
    const { words } = this.#memory;
    const commit = words[event] as number;
    if (!isSwitch(commit)) return recordBytes(commit & RECORD_LENGTH_MASK);
    return this.#word(words[event + EVENT_BODY] as number) === 0 ? recordBytes(0) : 0;
  }

  /** Writes the records of an origin among events, each behind its prefix. */
  #fill(records: Uint8Array, origin: number, first: number, end: number): void {
    const { words } = this.#memory;
    const frame = new Int32Array(records.buffer, records.byteOffset, records.length >>> 2);
    let at = 0;
    for (let event = first; event < end; event += EVENT_WORDS) {
      if (words[event + EVENT_ORIGIN] !== origin || this.#sizeOf(event) === 0) continue;
      const commit = words[event] as number;
      const body = (words[event + EVENT_BODY] as number) >>> 0;
      const length = isSwitch(commit) ? 0 : commit & RECORD_LENGTH_MASK;
      const kind = (commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK;
      at = putRecord(frame, at, kind, words[event + 1] as number, this.#memory, body, length);
    }
  }

  #pairOf(origin: number, target: number): number {
    return origin * this.#endpoints + target;
  }

  #word(pointer: number): number {
    return (this.#memory.words[pointer >>> 2] as number) >>> 0;
  }
}
