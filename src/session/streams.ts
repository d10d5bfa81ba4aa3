// The receiving ends of streams, one for each pair of endpoints. They deliver every segment once and in order, whichever
// sessions and packets brought it (S, D8). A stream without a gap costs its next order number; only a gap costs a queue.
import * as L from "../../assembly/layout.js";
import { alignUp, seqDelta } from "../../assembly/seq.js";
import type { Memory, PacketKernel } from "../kernel/kernel.js";
import type { Arena } from "./store/arena.js";

/** A stream buffers segments whose order numbers are less than this ahead of the next one. */
export const STREAM_WINDOW = 1024;

const QUEUE_BYTES = L.QUEUE_SLOTS_OFFSET + ((3 * STREAM_WINDOW) << L.QUEUE_ENTRY_SHIFT);

interface Stream {
  /** Order number of the next segment. While the stream has a queue, the queue's `next` holds it instead. */
  next: number;
  /** Pointer to its FIFO message queue; 0: there is no gap. */
  queue: number;
}

/** Bytes of a segment: header, content and padding. */
export function segmentBytes(words: Int32Array, segment: number): number {
  return L.SEGMENT_SIZE + alignUp((words[(segment + L.SEGMENT_LENGTH_OFFSET) >>> 2] as number) & 0xffff, 4);
}

/** Results of receive(): the segment was delivered or buffered, */
export const ACCEPTED = L.INSERT_DONE;
/** or dropped because it had come before, */
export const DUPLICATE = L.INSERT_DUPLICATE;
/** or dropped for want of room: its packet must count as lost. */
export const NO_ROOM = L.INSERT_OUTSIDE;

export class Streams {
  readonly #kernel: PacketKernel;
  readonly #memory: Memory;
  readonly #arena: Arena;
  readonly #deliver: (segment: number) => void;
  /** By origin and target, as words of the memory have them: with a sign. So each number is an integer to V8. */
  readonly #streams = new Map<number, Map<number, Stream>>();
  /** The stream of the last segment, and mostly of the next one, too. It saves two Map lookups of 15 ns each. */
  #last: Stream | undefined;
  #lastOrigin = 0;
  #lastTarget = 0;
  /** Bytes of buffered segments. */
  buffered = 0;
  /** Segments that were dropped because they had come before. */
  duplicates = 0;

  /** @param deliver gets a pointer to each segment, in order; the pointer is valid until it returns */
  constructor(kernel: PacketKernel, memory: Memory, arena: Arena, deliver: (segment: number) => void) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#arena = arena;
    this.#deliver = deliver;
  }

  /** Streams that have received a segment. */
  get count(): number {
    let count = 0;
    for (const from of this.#streams.values()) count += from.size;
    return count;
  }

  /**
   * Takes a received segment. It is delivered, followed by the buffered segments after it; or copied into a buffer behind a
   * gap; or dropped. The caller owns the segment's memory again when this returns.
   * @returns ACCEPTED, DUPLICATE, NO_ROOM
   */
  receive(segment: number): number {
    const { words } = this.#memory;
    const origin = words[(segment + L.SEGMENT_ORIGIN_OFFSET) >>> 2] as number;
    const target = words[(segment + L.SEGMENT_TARGET_OFFSET) >>> 2] as number;
    const order = (words[(segment + L.SEGMENT_ORDER_OFFSET) >>> 2] as number) >>> 0;
    const stream = this.#streamOf(origin, target);
    if (stream.queue === 0) {
      const ahead = seqDelta(order, stream.next);
      if (ahead === 0) {
        stream.next = (order + 1) >>> 0;
        this.#deliver(segment);
        return ACCEPTED;
      }
      if (ahead < 0) {
        this.duplicates++;
        return DUPLICATE;
      }
      if (ahead >= STREAM_WINDOW) return NO_ROOM;
      stream.queue = this.#arena.allocate(QUEUE_BYTES);
      if (stream.queue === 0) return NO_ROOM;
      this.#kernel.queueInit(stream.queue, STREAM_WINDOW, stream.next, false);
    }
    return this.#enqueue(stream, segment, order);
  }

  /** Inserts a segment into the stream's queue, and delivers the segments that are in sequence then. */
  #enqueue(stream: Stream, segment: number, order: number): number {
    const { words, bytes } = this.#memory;
    const kernel = this.#kernel;
    const { queue } = stream;
    const isNext = order === (words[(queue + L.QUEUE_NEXT_OFFSET) >>> 2] as number) >>> 0;
    const size = segmentBytes(words, segment);
    const copy = isNext ? segment : this.#arena.allocate(size);
    if (copy === 0) return NO_ROOM;
    const result = kernel.queueInsert(queue, order, copy);
    if (result !== L.INSERT_DONE) {
      if (copy !== segment) this.#arena.free(copy, size);
      if (result === L.INSERT_DUPLICATE) this.duplicates++;
      return result;
    }
    if (copy !== segment) {
      bytes.copyWithin(copy, segment, segment + size);
      this.buffered += size;
      return ACCEPTED;
    }
    for (let next = kernel.queueNext(queue); next !== 0; next = kernel.queueNext(queue)) {
      this.#deliver(next);
      if (next !== segment) this.#free(next);
    }
    if (words[(queue + L.QUEUE_HEAD_OFFSET) >>> 2] === words[(queue + L.QUEUE_TAIL_OFFSET) >>> 2])
      this.#freeQueue(stream);
    return ACCEPTED;
  }

  /** Frees a buffered segment. */
  #free(segment: number): void {
    const size = segmentBytes(this.#memory.words, segment);
    this.buffered -= size;
    this.#arena.free(segment, size);
  }

  /** The gap is closed: frees the queue, and keeps the next order number. */
  #freeQueue(stream: Stream): void {
    stream.next = (this.#memory.words[(stream.queue + L.QUEUE_NEXT_OFFSET) >>> 2] as number) >>> 0;
    this.#arena.free(stream.queue, QUEUE_BYTES);
    stream.queue = 0;
  }

  #streamOf(origin: number, target: number): Stream {
    const last = this.#last;
    if (last !== undefined && origin === this.#lastOrigin && target === this.#lastTarget) return last;
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

  /** Drops the streams of an origin endpoint that has ended or restarted, and the segments buffered in them. */
  forget(origin: number): void {
    const key = origin | 0;
    for (const stream of this.#streams.get(key)?.values() ?? []) {
      if (stream.queue === 0) continue;
      const { words } = this.#memory;
      const first = stream.queue + L.QUEUE_SLOTS_OFFSET;
      const head = words[(stream.queue + L.QUEUE_HEAD_OFFSET) >>> 2] as number;
      const tail = words[(stream.queue + L.QUEUE_TAIL_OFFSET) >>> 2] as number;
      for (let slot = head; slot !== tail; slot = (slot + 1) | 0) {
        const packet = words[(first + ((slot & (2 * STREAM_WINDOW - 1)) << L.QUEUE_ENTRY_SHIFT) + 4) >>> 2] as number;
        if (packet !== 0) this.#free(packet >>> 0);
      }
      this.#freeQueue(stream);
    }
    this.#streams.delete(key);
    this.#last = undefined;
  }
}
