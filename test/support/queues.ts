// A FIFO message queue in a rig's heap, and a model of it that is simpler than the queue.
import {
  INSERT_DONE,
  INSERT_DUPLICATE,
  INSERT_OUTSIDE,
  PAGE_SHIFT,
  QUEUE_DUPLICATES_OFFSET,
  QUEUE_ENTRY_SHIFT,
  QUEUE_HEAD_OFFSET,
  QUEUE_HELD_OFFSET,
  QUEUE_LOW_OFFSET,
  QUEUE_NEXT_OFFSET,
  QUEUE_OUTSIDE_OFFSET,
  QUEUE_SLOTS_OFFSET,
  QUEUE_SUB_HEAD_OFFSET,
  QUEUE_SUB_TAIL_OFFSET,
  QUEUE_TAIL_OFFSET,
  QUEUE_TURN_OFFSET,
} from "../../assembly/layout.js";
import type { PacketKernel } from "../../src/kernel/kernel.js";
import type { Rig } from "./kernels.js";

/** Bytes of a queue, as layout.ts draws it. */
export function bytesOfQueue(window: number): number {
  return QUEUE_SLOTS_OFFSET + ((3 * window) << QUEUE_ENTRY_SHIFT);
}

/** Makes a queue in memory that means nothing. */
export function makeQueue(rig: Rig, window: number, first: number, shared: boolean): Queue {
  const pages = ((bytesOfQueue(window) - 1) >>> PAGE_SHIFT) + 1;
  const pointer = rig.producer.heapAllocate(rig.map.job, pages, 0);
  if (pointer < 4096) throw new Error(`heapAllocate() gave ${pointer}`);
  rig.producer.queueInit(pointer, window, first, shared);
  return new Queue(rig, pointer, window, first);
}

export class Queue {
  readonly rig: Rig;
  readonly pointer: number;
  readonly window: number;
  readonly first: number;

  constructor(rig: Rig, pointer: number, window: number, first: number) {
    this.rig = rig;
    this.pointer = pointer;
    this.window = window;
    this.first = first;
  }

  /** The second thread: its socket. */
  get second(): PacketKernel {
    return this.rig.producer;
  }

  /** The first thread: it consumes. */
  get consumer(): PacketKernel {
    return this.rig.consumer;
  }

  /** Inserts packet `at`, counted from the first: its content is at + 1. */
  insert(at: number): number {
    return this.second.queueInsert(this.pointer, (this.first + at) >>> 0, at + 1);
  }

  /** The packets that the first thread takes until it finds none. */
  takeRun(): number[] {
    const taken: number[] = [];
    for (let packet = this.take(); packet !== undefined; packet = this.take()) taken.push(packet);
    return taken;
  }

  take(): number | undefined {
    const packet = this.consumer.queueTake(this.pointer);
    return packet === 0 ? undefined : packet - 1;
  }

  reset(): boolean {
    return this.second.queueReset(this.pointer) === 1;
  }

  /** All that is in sequence, by one thread. */
  takeAll(): number[] {
    const taken: number[] = [];
    for (let packet = this.second.queueNext(this.pointer); packet !== 0; packet = this.second.queueNext(this.pointer))
      taken.push(packet - 1);
    return taken;
  }

  word(offset: number): number {
    return this.rig.word(this.pointer + offset);
  }

  /** [head, sub-head, sub-tail, tail] */
  get pointers(): number[] {
    return [QUEUE_HEAD_OFFSET, QUEUE_SUB_HEAD_OFFSET, QUEUE_SUB_TAIL_OFFSET, QUEUE_TAIL_OFFSET].map((offset) =>
      this.word(offset),
    );
  }

  get turn(): number {
    return this.word(QUEUE_TURN_OFFSET);
  }

  /** Number of the next packet, counted from the first. */
  get next(): number {
    return (this.word(QUEUE_NEXT_OFFSET) - this.first) >>> 0;
  }

  /** As next, at the last reset. */
  get low(): number {
    return (this.word(QUEUE_LOW_OFFSET) - this.first) >>> 0;
  }

  get duplicates(): number {
    return this.word(QUEUE_DUPLICATES_OFFSET);
  }

  get outside(): number {
    return this.word(QUEUE_OUTSIDE_OFFSET);
  }

  get held(): number {
    return this.word(QUEUE_HELD_OFFSET);
  }
}

/** What a queue does, without slots and pointers: packets that are there, and the number of the next. */
export class QueueModel {
  readonly window: number;
  readonly #there = new Set<number>();
  next = 0;
  /** As a queue's: it learns of what was consumed when it is reset. */
  low = 0;
  duplicates = 0;
  outside = 0;

  constructor(window: number) {
    this.window = window;
  }

  insert(at: number): number {
    if (at < this.low || this.#there.has(at) || (at < this.next && at >= this.low)) {
      this.duplicates++;
      return INSERT_DUPLICATE;
    }
    if (at >= this.low + this.window) {
      this.outside++;
      return INSERT_OUTSIDE;
    }
    this.#there.add(at);
    return INSERT_DONE;
  }

  /** All that is in sequence. */
  takeAll(): number[] {
    const taken: number[] = [];
    while (this.#there.delete(this.next)) taken.push(this.next++);
    this.low = this.next;
    return taken;
  }
}
