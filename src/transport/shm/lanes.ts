// Shared memory, the origin's side: the lanes from one context to its targets, and how a message is written into one. A lane
// is made at the first message. A larger one replaces it when a message needs it.
import * as L from "../../../assembly/layout.js";
import { alignUp } from "../../../assembly/seq.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { isToSpare } from "../../memory/heap.js";
import { isClosed, type MemoryMap, ordinalOf, taskSlot } from "../../memory/map.js";
import { endpointCount, isRemote, taskAt } from "../../node/address.js";
import { copyInto } from "../../support/copy.js";
import { LANE_ENDED, LANE_FULL, LANE_LATER, LANE_NO_MEMORY, LANE_READY, type Lanes } from "../transport.js";

/** Bytes up to which a copy by a loop beats TypedArray.set into shared memory. */
const LOOP_BYTES = 8;
/** On-heap typed arrays are at most this long; asking them for `buffer` makes V8 move them. */
const ON_HEAP_BYTES = 64;
/** Messages in flight for which a busy lane should have room: the window of the usual bandwidth tests. */
const WINDOW = 64;
/** Times that a lane may be full before it is replaced by a larger one. */
const FULLS_MAX = 16;

/**
 * Bytes of the largest grown lane that an agent reads or writes: as much as may be on its way for a pair of contexts. So what
 * comes has room, and the agent finds many records of 64 KiB in each turn. With a quarter, streams of 1 MiB messages took 1.2
 * times the processor time.
 */
export const LANE_BYTES_AGENT = 4_194_304;
/** Such lanes of all pairs of tasks, there and back, take at most this part of the heap, beyond what grown lanes take. */
const AGENT_LANES_PART = 8;

/** If there is no memory for a grown lane, the context tries an eighth of that size, and so on. */
const GROWTH_SHIFT = 3;

/** Bytes of the largest record that a lane must take for a body of `bytes`. */
function recordBytes(bytes: number): number {
  return alignUp(bytes + L.RECORD_BODY_OFFSET, L.RECORD_GRANULE);
}

function agentsBytes({ tasks, locals, heapBytes }: MemoryMap): number {
  const lanes = 2 * locals * (tasks - locals);
  let bytes = LANE_BYTES_AGENT;
  while (bytes > L.LANE_BYTES_GROWN && bytes * lanes * AGENT_LANES_PART > heapBytes) bytes >>>= 1;
  return bytes;
}

export class ShmLanes implements Lanes {
  /** Lane to each target's ordinal, 0 where there is none. */
  readonly open: Uint32Array;
  readonly #reclaim: () => void;
  readonly #kernel: Kernel;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #buffer: SharedArrayBuffer;
  readonly #map: MemoryMap;
  /** Ordinal of the context whose lanes they are. */
  readonly origin: number;
  /** Bytes of the largest record of a lane that has not been replaced. */
  readonly #smallRecordMax: number;
  /** Bytes of a grown lane that an agent reads or writes. */
  readonly #agentsBytes: number;

  /** @param reclaim gives back what this task has closed and nothing uses any more */
  constructor(kernel: Kernel, memory: Memory, map: MemoryMap, origin: number, reclaim = () => {}) {
    this.#reclaim = reclaim;
    this.open = new Uint32Array(endpointCount(map));
    this.#kernel = kernel;
    this.#words = memory.words;
    this.#bytes = memory.bytes;
    this.#buffer = memory.buffer;
    this.#map = map;
    this.origin = origin;
    this.#agentsBytes = agentsBytes(map);
    this.#smallRecordMax = Math.min(recordBytes(L.SEND_IMMEDIATE_MAX), map.laneBytes - L.RECORD_GRANULE);
  }

  /**
   * Bytes of the largest body that every lane takes as one record, unless the heap had no piece for a first lane of full
   * size.
   */
  get smallBodyMax(): number {
    return this.#smallRecordMax - L.RECORD_BODY_OFFSET;
  }

  /** Bytes of the largest body that a lane takes as one record. */
  recordBodyMax(lane: number): number {
    return (this.#words[(lane + L.LANE_RECORD_MAX_OFFSET) >>> 2] as number) - L.RECORD_BODY_OFFSET;
  }

  /**
   * Sends a whole message as one record; false: no room.
   * @param total bytes of the body
   */
  send(
    lane: number,
    meta: number,
    header: Uint8Array | undefined,
    payload: Uint8Array | undefined,
    total: number,
  ): boolean {
    const words = this.#words;
    const tail = words[(lane + L.LANE_TAIL_OFFSET) >>> 2] as number;
    const capacity = words[(lane + L.LANE_CAPACITY_OFFSET) >>> 2] as number;
    const used = (tail - (words[(lane + L.LANE_HEAD_CACHE_OFFSET) >>> 2] as number)) | 0;
    let body = lane + L.LANE_CONTROL_SIZE + (tail & (capacity - 1)) + L.RECORD_BODY_OFFSET;
    // While the lane is known to have room, its place needs no call into wasm. The record's bytes: recordBytes(), written out.
    if (
      used + ((total + L.RECORD_BODY_OFFSET + L.RECORD_GRANULE - 1) & -L.RECORD_GRANULE) >
      capacity - L.RECORD_GRANULE
    ) {
      body = this.#kernel.laneReserve(lane, total);
      if (body === 0) return false;
    }
    const bytes = this.#bytes;
    // Short parts are copied here, without a function: all that a call with 8 bytes has.
    if (header !== undefined) {
      const { length } = header;
      if (length > LOOP_BYTES) this.copyIn(header, body);
      else for (let i = 0; i < length; i++) bytes[body + i] = header[i] as number;
    }
    if (payload !== undefined) {
      const { length } = payload;
      const place = body + total - length;
      if (length > LOOP_BYTES) this.copyIn(payload, place);
      else for (let i = 0; i < length; i++) bytes[place + i] = payload[i] as number;
    }
    this.#kernel.laneCommit(lane, L.KIND_MESSAGE, total, meta);
    return true;
  }

  /** Copies the caller's bytes into shared memory. */
  copyIn(view: Uint8Array, pointer: number): void {
    const { length } = view;
    if (length <= LOOP_BYTES) {
      const bytes = this.#bytes;
      for (let i = 0; i < length; i++) bytes[pointer + i] = view[i] as number;
    } else if (length > ON_HEAP_BYTES && view.buffer === this.#buffer) {
      this.#kernel.copyBytes(pointer, view.byteOffset, length);
    } else copyInto(this.#bytes, pointer, view);
  }

  /**
   * Whether a lane was full FULLS_MAX times, and holds fewer than WINDOW messages of this size. A lane that the agent reads
   * or writes for a task of another node may hold more: the agent then sends more messages in a frame, and wakes the task
   * less often.
   */
  #isCramped(target: number, lane: number, bytes: number): boolean {
    const capacity = this.#words[(lane + L.LANE_CAPACITY_OFFSET) >>> 2] as number;
    if (capacity >= this.#grownBytes(target)) return false;
    if (!this.#isAgents(target) && capacity >= recordBytes(bytes) * WINDOW) return false;
    return (this.#words[(lane + L.LANE_FULLS_OFFSET) >>> 2] as number) >= FULLS_MAX;
  }

  /** Whether the agent reads or writes the lane to a target, for a task of another node. */
  #isAgents(target: number): boolean {
    return isRemote(this.#map, target) || isRemote(this.#map, this.origin);
  }

  #grownBytes(target: number): number {
    return Math.max(this.#map.laneBytes, this.#isAgents(target) ? this.#agentsBytes : L.LANE_BYTES_GROWN);
  }

  /** Whether an endpoint has ended, by its ordinal: it was closed, or its task has closed its client, or died. */
  hasEnded(target: number): boolean {
    const task = taskAt(this.#map, target);
    const hasTaskEnded = this.#kernel.loadWord(taskSlot(this.#map, task) + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED;
    return hasTaskEnded || isClosed(this.#kernel, this.#map, target);
  }

  /**
   * Provides a lane to the target that takes a body of `bytes` as one record. LANE_NO_MEMORY: the lane that is there takes
   * the body in packets.
   */
  ensure(target: number, bytes: number): number {
    const lane = this.open[target] as number;
    const fits = lane !== 0 && bytes <= this.recordBodyMax(lane);
    if (fits && !this.#isCramped(target, lane, bytes)) return LANE_READY;
    if (this.hasEnded(target)) return LANE_ENDED;
    if (lane !== 0 && this.#kernel.laneRoom(lane) < 8) return LANE_FULL;
    const state = this.#make(target, lane, fits || recordBytes(bytes) > this.#smallRecordMax);
    if (!fits)
      return state === LANE_READY && bytes > this.recordBodyMax(this.open[target] as number) ? LANE_NO_MEMORY : state;
    // While there is no memory for a larger lane, a lane that takes the message stays. The next attempt follows after as
    // many fulls again, not with each message.
    if (state === LANE_NO_MEMORY) this.#words[(lane + L.LANE_FULLS_OFFSET) >>> 2] = 0;
    return LANE_READY;
  }

  /** Makes the lane to a target, or a larger one in its place: if `grow`, as large as there is memory for. */
  #make(target: number, lane: number, grow: boolean): number {
    const { laneBytes } = this.#map;
    const there = lane === 0 ? laneBytes : (this.#words[(lane + L.LANE_CAPACITY_OFFSET) >>> 2] as number);
    let capacity = this.#grownBytes(target);
    while (grow) {
      // Half of a ring, so that one record is read while the next is written.
      const recordMax = Math.min(recordBytes(L.RECV_IMMEDIATE_MAX), capacity >>> 1);
      const state = this.#isToSpare(L.LANE_CONTROL_SIZE + capacity + recordMax)
        ? this.#take(target, lane, capacity, recordMax)
        : LANE_NO_MEMORY;
      if (state !== LANE_NO_MEMORY) return state;
      capacity >>>= GROWTH_SHIFT;
      if (capacity <= there) break;
    }
    if (lane !== 0) return LANE_NO_MEMORY;
    // If the heap has no piece for it, a smaller lane is tried.
    for (capacity = laneBytes; capacity >= L.LANE_BYTES_MIN; capacity >>>= GROWTH_SHIFT) {
      const state = this.#take(target, 0, capacity, Math.min(this.#smallRecordMax, capacity - L.RECORD_GRANULE));
      if (state !== LANE_NO_MEMORY) return state;
    }
    return LANE_NO_MEMORY;
  }

  /** Takes memory for a lane. */
  #take(target: number, lane: number, capacity: number, recordMax: number): number {
    const { job } = this.#map;
    const take = (): number =>
      lane === 0
        ? this.#kernel.laneOpen(job, this.origin, target, capacity, recordMax)
        : this.#kernel.laneReplace(job, lane, capacity, recordMax);
    let fresh = take();
    if (fresh === L.OPEN_NO_MEMORY) {
      this.#reclaim();
      fresh = take();
    }
    if (fresh === L.OPEN_NO_MEMORY) return LANE_NO_MEMORY;
    if (fresh === L.OPEN_BUSY) return LANE_LATER;
    this.open[target] = fresh;
    return LANE_READY;
  }

  /** Whether the heap has memory for a larger lane. */
  #isToSpare(bytes: number): boolean {
    if (isToSpare(this.#kernel, this.#map, bytes)) return true;
    this.#reclaim();
    return isToSpare(this.#kernel, this.#map, bytes);
  }

  /**
   * The target has ended: takes back the lane to it, and the lanes to it of this task's closed contexts. No consumer reads
   * them any more. Only the origin's thread may call this.
   */
  reclaim(target: number): void {
    const { job, contexts } = this.#map;
    this.open[target] = 0;
    const first = ordinalOf(this.#map, taskAt(this.#map, this.origin), 0);
    for (let origin = first; origin < first + contexts; origin++) {
      if (origin === this.origin || isClosed(this.#kernel, this.#map, origin))
        this.#kernel.laneReclaim(job, origin, target);
    }
  }

  /** Ends the lane; the target frees it when it has read everything. Returns whether there was room to say so. */
  close(target: number): boolean {
    const lane = this.open[target] as number;
    if (lane === 0) return true;
    if (this.#kernel.laneReplace(this.#map.job, lane, 0, 0) === L.OPEN_BUSY) return false;
    this.open[target] = 0;
    return true;
  }
}
