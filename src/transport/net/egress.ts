// Egress: takes the records of this task's contexts out of the blocks that stand for other tasks in this memory, and sends
// what was committed since, in one frame for each pair of contexts. CREDIT_BYTES may be on their way for a pair. Then its lane
// is not read until the target gives some back.

import {
  ADVANCE_EVENTS_MASK,
  CONTEXT_EVENTS_OFFSET,
  EVENT_SIZE,
  LANE_TARGET_OFFSET,
  RECORD_KIND_MASK,
  RECORD_KIND_SHIFT,
  RECORD_LENGTH_MASK,
} from "../../../assembly/layout.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, isClosed, type MemoryMap } from "../../memory/map.js";
import { endpointCount, taskAt } from "../../node/address.js";
import type { Pipe } from "./frames.js";
import { CREDIT_BYTES, isSwitch, putRecord, recordBytes } from "./records.js";

const EVENT_WORDS = EVENT_SIZE >>> 2;
/** Words of an event: where the body is, and whose it is. */
const EVENT_BODY = 2;
const EVENT_ORIGIN = 3;

export class Egress {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #task: number;
  readonly #endpoints: number;
  readonly #pipe: Pick<Pipe, "send" | "flush">;
  readonly #hasEnded: (task: number) => boolean;
  readonly #wake: () => void;
  /** Bytes of records on their way, for each pair of origin and target. */
  readonly #inFlight = new Map<number, number>();
  /** Pairs whose lane is not read, for so much is on its way. */
  readonly #heldBack = new Set<number>();
  /** Ordinals of contexts of other tasks to which something was sent. */
  readonly #fresh = new Set<number>();
  #isScheduled = false;
  #closed = false;

  /** @param wake wakes whoever waits on this thread: for what is his own, or for room */
  constructor(
    kernel: Kernel,
    memory: Memory,
    map: MemoryMap,
    task: number,
    pipe: Pick<Pipe, "send" | "flush">,
    hasEnded: (task: number) => boolean,
    wake: () => void,
  ) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#task = task;
    this.#endpoints = endpointCount(map);
    this.#pipe = pipe;
    this.#hasEnded = hasEnded;
    this.#wake = wake;
  }

  /** Bytes of a pair have arrived. False: so many were not on their way. */
  credited(origin: number, target: number, bytes: number): boolean {
    const pair = this.#pairOf(origin, target);
    const inFlight = this.#inFlight.get(pair) ?? 0;
    if (bytes > inFlight) return false;
    this.#inFlight.set(pair, inFlight - bytes);
    if (inFlight - bytes < CREDIT_BYTES && this.#heldBack.has(pair)) {
      this.#readAgain(pair);
      this.#flush(CREDIT_BYTES);
    }
    return true;
  }

  #readAgain(pair: number): void {
    this.#heldBack.delete(pair);
    const target = pair % this.#endpoints;
    const block = contextBlock(this.#map, target);
    const origin = Math.floor(pair / this.#endpoints);
    if (this.#kernel.laneOf(block, origin) === 0) return;
    this.#kernel.laneResume(block, origin);
    this.#fresh.add(target);
  }

  /** Something was committed in a lane. */
  sent(lane: number): void {
    const target = this.#memory.words[(lane + LANE_TARGET_OFFSET) >>> 2] as number;
    if (this.#taskOf(target) === this.#task) {
      this.#wake();
      return;
    }
    this.#fresh.add(target);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#flush(CREDIT_BYTES);
    });
  }

  /** Posts what was committed, as far as the windows go. */
  turn(): void {
    if (this.#fresh.size > 0) this.#flush(CREDIT_BYTES);
  }

  /** Posts all that was committed, whatever is on its way. */
  flushAll(): void {
    for (const pair of this.#heldBack) this.#readAgain(pair);
    this.#flush(Number.POSITIVE_INFINITY);
  }

  /** Nothing more is sent. */
  close(): void {
    this.#closed = true;
  }

  #flush(window: number): void {
    if (this.#closed) return;
    let isFree = false;
    for (const target of this.#fresh) {
      const task = this.#taskOf(target);
      const block = contextBlock(this.#map, target);
      const isOver = this.#hasEnded(task) || isClosed(this.#kernel, this.#map, target);
      while (!isOver) {
        const count = this.#kernel.advance(block, 1) & ADVANCE_EVENTS_MASK;
        if (count === 0) break;
        isFree = true;
        this.#send(block, count, target, window);
      }
      this.#fresh.delete(target);
      this.#kernel.peek(block); // frees what was taken
    }
    this.#pipe.flush();
    if (isFree) this.#wake();
  }

  /** Posts a batch of events of a block, and takes them out of it, but for those of pairs that are held back by now. */
  #send(block: number, count: number, target: number, window: number): void {
    const { words } = this.#memory;
    const first = (block + CONTEXT_EVENTS_OFFSET) >>> 2;
    const end = first + count * EVENT_WORDS;
    const origins = new Set<number>();
    const switches: number[] = [];
    for (let event = first; event < end; event += EVENT_WORDS) {
      const origin = words[event + EVENT_ORIGIN] as number;
      const pair = this.#pairOf(origin, target);
      if (this.#heldBack.has(pair)) continue;
      if ((this.#inFlight.get(pair) ?? 0) >= window && !origins.has(origin)) {
        this.#heldBack.add(pair);
        this.#kernel.lanePause(this.#kernel.laneOf(block, origin), words[event + EVENT_BODY] as number);
        continue;
      }
      origins.add(origin);
      if (isSwitch(words[event] as number)) switches.push(origin, this.#word(words[event + EVENT_BODY] as number));
    }
    for (const origin of origins) {
      const records = this.#recordsOf(origin, first, end);
      if (records.length === 0) continue;
      const pair = this.#pairOf(origin, target);
      this.#inFlight.set(pair, (this.#inFlight.get(pair) ?? 0) + records.length);
      this.#pipe.send(origin, target, { records });
    }
    this.#kernel.release(block);
    for (let i = 0; i < switches.length; i += 2) {
      this.#kernel.laneSwitch(this.#map.job, block, switches[i] as number, switches[i + 1] as number);
    }
  }

  /** The records of an origin among events, each behind its prefix. */
  #recordsOf(origin: number, first: number, end: number): Uint8Array {
    const { words, bytes } = this.#memory;
    let size = 0;
    for (let event = first; event < end; event += EVENT_WORDS) {
      if (words[event + EVENT_ORIGIN] === origin) size += recordBytes((words[event] as number) & RECORD_LENGTH_MASK);
    }
    const records = new Uint8Array(size);
    let at = 0;
    for (let event = first; event < end; event += EVENT_WORDS) {
      if (words[event + EVENT_ORIGIN] !== origin) continue;
      const commit = words[event] as number;
      const body = (words[event + EVENT_BODY] as number) >>> 0;
      // Over there lanes are replaced as that side needs it; only the end of one is told.
      if (isSwitch(commit) && this.#word(body) !== 0) continue;
      const length = isSwitch(commit) ? 0 : commit & RECORD_LENGTH_MASK;
      const kind = (commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK;
      at += putRecord(records, at, kind, words[event + 1] as number, bytes.subarray(body, body + length));
    }
    return records.subarray(0, at);
  }

  #pairOf(origin: number, target: number): number {
    return origin * this.#endpoints + target;
  }

  #taskOf(ordinal: number): number {
    return taskAt(this.#map, ordinal);
  }

  #word(pointer: number): number {
    return (this.#memory.words[pointer >>> 2] as number) >>> 0;
  }
}
