// Streams as they arrive: one for each pair of endpoints. Segments are given out once and in order, whatever sessions and
// packets they came in (S, D8). A stream costs its next order number; only while a gap is in it, it has a queue.
import {
  INSERT_DONE,
  INSERT_DUPLICATE,
  INSERT_OUTSIDE,
  QUEUE_ENTRY_SHIFT,
  QUEUE_HEAD_OFFSET,
  QUEUE_NEXT_OFFSET,
  QUEUE_SLOTS_OFFSET,
  QUEUE_TAIL_OFFSET,
  SEGMENT_LENGTH_OFFSET,
  SEGMENT_ORDER_OFFSET,
  SEGMENT_ORIGIN_OFFSET,
  SEGMENT_SIZE,
  SEGMENT_TARGET_OFFSET,
} from "../../assembly/layout.js";
import { alignUp, seqDelta } from "../../assembly/seq.js";
import type { Memory, PacketKernel } from "../kernel/kernel.js";

/** Memory of a node for queues and packets that wait: pointers into its linear memory. */
export interface Arena {
  /** @returns 0: there is none now */
  allocate(bytes: number): number;
  free(pointer: number, bytes: number): void;
}

/** Segments ahead of the next that are kept. */
export const STREAM_WINDOW = 1024;

const QUEUE_BYTES = QUEUE_SLOTS_OFFSET + ((3 * STREAM_WINDOW) << QUEUE_ENTRY_SHIFT);

interface Stream {
  /** Order number of the next segment; while there is a queue, that knows it. */
  next: number;
  /** Pointer to its FIFO message queue, or 0. */
  queue: number;
}

/** Bytes of a segment in memory: header, content and padding. */
export function segmentBytes(words: Int32Array, segment: number): number {
  return SEGMENT_SIZE + alignUp((words[(segment + SEGMENT_LENGTH_OFFSET) >>> 2] as number) & 0xffff, 4);
}

/** What became of a segment. */
export const TAKEN = INSERT_DONE;
export const REPEATED = INSERT_DUPLICATE;
/** There is no room for it: it is as if its packet were lost. */
export const HELD_BACK = INSERT_OUTSIDE;

export class Streams {
  readonly #kernel: PacketKernel;
  readonly #memory: Memory;
  readonly #arena: Arena;
  readonly #give: (segment: number) => void;
  readonly #streams = new Map<number, Map<number, Stream>>();
  /** The stream of the last segment: the next one is of the same, mostly, and two Maps are twice 15 ns. */
  #last: Stream = { next: 0, queue: 0 };
  #lastOrigin = -1;
  #lastTarget = -1;
  /** Bytes of segments that wait for others before them. */
  waiting = 0;
  /** Segments that were dropped, for they had come before. */
  repeated = 0;

  /** @param give gets each segment in order, by a pointer that is valid until it returns */
  constructor(kernel: PacketKernel, memory: Memory, arena: Arena, give: (segment: number) => void) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#arena = arena;
    this.#give = give;
  }

  /** Streams of which something came. */
  get count(): number {
    let count = 0;
    for (const from of this.#streams.values()) count += from.size;
    return count;
  }

  /**
   * A segment came, in memory that is somebody else's as soon as this returns: it is given out, with all that waited for it;
   * or copied, for others are missing before it; or dropped.
   */
  take(segment: number): number {
    const { words } = this.#memory;
    const origin = words[(segment + SEGMENT_ORIGIN_OFFSET) >>> 2] as number;
    const target = words[(segment + SEGMENT_TARGET_OFFSET) >>> 2] as number;
    const order = (words[(segment + SEGMENT_ORDER_OFFSET) >>> 2] as number) >>> 0;
    const stream = this.#streamOf(origin, target);
    if (stream.queue === 0) {
      const ahead = seqDelta(order, stream.next);
      if (ahead === 0) {
        stream.next = (order + 1) >>> 0;
        this.#give(segment);
        return TAKEN;
      }
      if (ahead < 0) {
        this.repeated++;
        return REPEATED;
      }
      if (ahead >= STREAM_WINDOW) return HELD_BACK;
      stream.queue = this.#arena.allocate(QUEUE_BYTES);
      if (stream.queue === 0) return HELD_BACK;
      this.#kernel.queueInit(stream.queue, STREAM_WINDOW, stream.next, false);
    }
    return this.#queue(stream, segment, order);
  }

  /** Puts a segment into a stream's queue, and gives out what is in sequence by then. */
  #queue(stream: Stream, segment: number, order: number): number {
    const { words, bytes } = this.#memory;
    const kernel = this.#kernel;
    const { queue } = stream;
    const isNext = order === (words[(queue + QUEUE_NEXT_OFFSET) >>> 2] as number) >>> 0;
    const size = segmentBytes(words, segment);
    const copy = isNext ? segment : this.#arena.allocate(size);
    if (copy === 0) return HELD_BACK;
    const result = kernel.queueInsert(queue, order, copy);
    if (result !== INSERT_DONE) {
      if (copy !== segment) this.#arena.free(copy, size);
      if (result === INSERT_DUPLICATE) this.repeated++;
      return result;
    }
    if (copy !== segment) {
      bytes.copyWithin(copy, segment, segment + size);
      this.waiting += size;
      return TAKEN;
    }
    for (let next = kernel.queueNext(queue); next !== 0; next = kernel.queueNext(queue)) {
      this.#give(next);
      if (next !== segment) this.#drop(next);
    }
    if (words[(queue + QUEUE_HEAD_OFFSET) >>> 2] === words[(queue + QUEUE_TAIL_OFFSET) >>> 2]) this.#giveBack(stream);
    return TAKEN;
  }

  #drop(segment: number): void {
    const size = segmentBytes(this.#memory.words, segment);
    this.waiting -= size;
    this.#arena.free(segment, size);
  }

  /** Nothing waits any more: the next order number is all that there is. */
  #giveBack(stream: Stream): void {
    stream.next = (this.#memory.words[(stream.queue + QUEUE_NEXT_OFFSET) >>> 2] as number) >>> 0;
    this.#arena.free(stream.queue, QUEUE_BYTES);
    stream.queue = 0;
  }

  #streamOf(origin: number, target: number): Stream {
    if (origin === this.#lastOrigin && target === this.#lastTarget) return this.#last;
    let from = this.#streams.get(origin);
    if (from === undefined) {
      from = new Map();
      this.#streams.set(origin, from);
    }
    let stream = from.get(target);
    if (stream === undefined) {
      stream = { next: 0, queue: 0 };
      from.set(target, stream);
    }
    this.#lastOrigin = origin;
    this.#lastTarget = target;
    this.#last = stream;
    return stream;
  }

  /** An origin endpoint is no more, or begins anew: so do its streams, and what waited in them is dropped. */
  forget(origin: number): void {
    for (const stream of this.#streams.get(origin)?.values() ?? []) {
      if (stream.queue === 0) continue;
      const { words } = this.#memory;
      const first = stream.queue + QUEUE_SLOTS_OFFSET;
      const head = words[(stream.queue + QUEUE_HEAD_OFFSET) >>> 2] as number;
      const tail = words[(stream.queue + QUEUE_TAIL_OFFSET) >>> 2] as number;
      for (let slot = head; slot !== tail; slot = (slot + 1) | 0) {
        const packet = words[(first + ((slot & (2 * STREAM_WINDOW - 1)) << QUEUE_ENTRY_SHIFT) + 4) >>> 2] as number;
        if (packet !== 0) this.#drop(packet >>> 0);
      }
      this.#giveBack(stream);
    }
    this.#streams.delete(origin);
    this.#lastOrigin = -1;
  }
}
