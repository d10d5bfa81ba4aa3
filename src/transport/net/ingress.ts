// Ingress writes records from other nodes into the lanes that stand for their origins in this memory. Records without room
// wait. The sender's credit bounds their bytes; ingress gives the credit back as records go into lanes.

import { KIND_MORE, KIND_RTS, KIND_SWITCH } from "../../../assembly/layout.js";
import { contextOf, type Endpoint, taskOf } from "../../core/endpoint.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { type MemoryMap, ordinalOf } from "../../memory/map.js";
import { type SlotTable, taskAt } from "../../node/address.js";
import { copyInto } from "../../support/copy.js";
import { LANE_BYTES_AGENT, ShmLanes } from "../shm/lanes.js";
import { LANE_FULL, LANE_NO_MEMORY, LANE_READY } from "../transport.js";
import { BUFFER_BYTES, FrameBuffers } from "./frame-buffers.js";
import type { SendFrame } from "./frames.js";
import type { NetParts } from "./net-parts.js";
import {
  begun,
  CREDIT_BYTES,
  copyBody,
  isOver,
  kindAt,
  type LaneRecord,
  lengthAt,
  metaAt,
  NO_REST,
  type Rest,
  recordAt,
  restAfter,
  wordBehind,
} from "./records.js";

/** Credit in bytes that a target collects before giving it back. */
const CREDIT = CREDIT_BYTES / 4;

/** The incoming data of one stream, from a context of another node to a context of this node. */
interface Stream {
  readonly from: Endpoint;
  readonly to: Endpoint;
  /** Checked records of frames that had no room yet, and their bytes. */
  readonly frames: Int32Array[];
  bytes: number;
  /** The rest of the first waiting record, if it goes into its lane in packets. */
  cut: LaneRecord | undefined;
  /** Bytes that have gone into the lane, whose credit is not given back yet. */
  credit: number;
  /** The part of a message in packets that has not come. */
  rest: Rest;
  /**
   * The lane that had no room for the next record or packet, and the bytes it needs. 0: the stream does not wait for room.
   */
  full: number;
  needs: number;
}

/** The incoming data of one task. */
interface Incoming {
  /** By origin's context, then by target. */
  readonly streams: Map<Endpoint, Map<Endpoint, Stream>>;
  /**
   * By endpoint of the task's contexts, and under ALL for the task itself: number of streams whose END frame has not come yet.
   */
  readonly ends: Map<number, number>;
}

const ALL = -1;
/** Bytes of the body of a record that names the next lane, or none. */
const SWITCH_BYTES = 8;

/** The calls of ingress to the agent. */
export interface IngressHost {
  /** The slot of a task; binds a slot if the task has none. Negative: no slot is free now. */
  bind(task: number): number;
  /** A task has ended, and all its records are in lanes. */
  end(task: number): void;
  /** As end(), for a context of another node's task. */
  retire(endpoint: Endpoint): void;
  /** A record is about to be written for the task in a slot, which the host rings later. */
  hold(slot: number): void;
}

export class Ingress {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: SlotTable;
  /**
   * Bytes of a stream's waiting records above which further records are refused. A sender that observes its credit stays below
   * this limit.
   */
  readonly #waitingMax: number;
  readonly #send: SendFrame;
  readonly #host: IngressHost;
  readonly #incoming = new Map<number, Incoming>();
  /** Tasks from which an END has come, and that have not yet ended for this node. */
  readonly #ending = new Set<number>();
  /**
   * Streams whose records wait for room, or for a slot, each once. No Set: a Set that becomes empty allocates another table,
   * and most frames wait only until deliver().
   */
  #waiting: Stream[] = [];
  /** The stream of the frame that file() took last. The stream does not own that frame's bytes. */
  #borrower: Stream | undefined;
  readonly #buffers = new FrameBuffers();
  /** Whether records wait for memory or for a lock: no thread rings when memory or the lock becomes free. */
  isRestless = false;
  /** The lane that had no room last, and the bytes of the record. */
  #full = 0;
  #needs = 0;
  /** By ordinal: the lanes that this node's agent writes on behalf of other nodes' contexts. */
  readonly #lanes: (ShmLanes | undefined)[] = [];

  constructor({ kernel, memory, map, addresses }: NetParts, send: SendFrame, host: IngressHost) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#addresses = addresses;
    // A credit, plus the contents of two lanes: one for a batch beyond the credit, one for the records that a closing context
    // flushes.
    this.#waitingMax = CREDIT_BYTES + 2 * Math.max(map.laneBytes, LANE_BYTES_AGENT);
    this.#send = send;
    this.#host = host;
  }

  #from(task: number): Incoming {
    let incoming = this.#incoming.get(task);
    if (incoming === undefined) {
      incoming = { streams: new Map(), ends: new Map() };
      this.#incoming.set(task, incoming);
    }
    return incoming;
  }

  /**
   * Takes an END frame, in one stream, of a context or of a whole task.
   * @param streams number of streams in which an END comes
   * @returns false: there can't be so many streams
   */
  ends(from: Endpoint, isTask: boolean, streams: number): boolean {
    const { contexts, locals } = this.#map;
    if (streams < 1 || streams > locals * (isTask ? contexts ** 2 : contexts)) return false;
    const { ends } = this.#from(taskOf(from));
    const whose = isTask ? ALL : from;
    ends.set(whose, (ends.get(whose) ?? streams) - 1);
    this.#ending.add(taskOf(from));
    return true;
  }

  /** The slot of a task is given back: forgets the task's streams, unless records of a stream wait for another slot. */
  prune(task: number): void {
    if (!this.#waiting.some(({ from }) => taskOf(from) === task)) this.#incoming.delete(task);
  }

  /** A task has ended: drops its records that are not in lanes. */
  forget(task: number): void {
    this.#incoming.delete(task);
    this.#ending.delete(task);
    this.#waiting = this.#waiting.filter(({ from }) => taskOf(from) !== task);
  }

  /** The slot of an ordinal is given back, and so are its lanes. */
  release(ordinal: number): void {
    this.#lanes[ordinal] = undefined;
  }

  /**
   * Ends the lanes of a context of another node. False: some lanes have no room for the switch record; their targets ring once
   * there is room. Records that come later wait.
   */
  close(ordinal: number): boolean {
    const lanes = this.#lanes[ordinal];
    if (lanes === undefined) return true;
    let isClosed = true;
    for (const [target, lane] of lanes.open.entries()) {
      if (lane === 0) continue;
      this.#kernel.laneWantRoom(lane, 1);
      if (!lanes.close(target)) isClosed = false;
    }
    return isClosed;
  }

  /** Whether something from a task has begun to go into a lane, and is incomplete: a message in packets, an end. */
  isBusy(task: number): boolean {
    const incoming = this.#incoming.get(task);
    if (incoming === undefined) return false;
    if (incoming.ends.size > 0) return true;
    for (const targets of incoming.streams.values()) {
      for (const { frames, cut, rest } of targets.values()) {
        const [next] = frames;
        const isMidway = next === undefined ? !isOver(rest) : kindAt(next, 0) === KIND_MORE;
        if (isMidway || cut !== undefined) return true;
      }
    }
    return false;
  }

  /** Gives back all credit that is due to a task. */
  settle(task: number): void {
    for (const targets of this.#incoming.get(task)?.streams.values() ?? []) {
      for (const stream of targets.values()) {
        if (stream.credit > 0) this.#send(stream.to, stream.from, { credit: stream.credit });
        stream.credit = 0;
      }
    }
  }

  /** A context of this node has closed: frees the lanes to it that no other thread frees. */
  reclaim(ordinal: number): void {
    for (const lanes of this.#lanes) lanes?.reclaim(ordinal);
  }

  /** Appends incoming records to their stream. False: the bytes are no valid records. */
  file(from: Endpoint, to: Endpoint, bytes: Uint8Array): boolean {
    const { streams } = this.#from(taskOf(from));
    const targets = streams.get(from) ?? new Map<Endpoint, Stream>();
    const known = targets.get(to);
    if (bytes.length % 4 !== 0 || (known !== undefined && known.bytes > this.#waitingMax)) return false;
    const { buffer, byteOffset, length } = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
    const words = new Int32Array(buffer, byteOffset, length >>> 2);
    const rest = restAfter(words, known?.rest ?? NO_REST);
    if (rest === undefined) return false;
    const stream = known ?? {
      from,
      to,
      frames: [],
      bytes: 0,
      cut: undefined,
      credit: 0,
      rest,
      full: 0,
      needs: 0,
    };
    if (known === undefined) streams.set(from, targets.set(to, stream));
    stream.rest = rest;
    if (length === 0) return true;
    if (stream.frames.push(words) === 1) this.#waiting.push(stream);
    stream.bytes += length;
    this.#borrower = stream;
    return true;
  }

  /** The bytes of the frame that file() took last are about to become invalid: copies the bytes of waiting records. */
  keep(): void {
    const frames = this.#borrower?.frames ?? [];
    const last = frames.pop();
    if (last !== undefined) frames.push(this.#copyOf(last));
    this.#borrower = undefined;
  }

  #copyOf(frame: Int32Array): Int32Array {
    const { buffer, byteOffset, byteLength, length } = frame;
    // A short frame must not hold a buffer that is much longer.
    if (2 * byteLength < BUFFER_BYTES) return frame.slice();
    const bytes = this.#buffers.take(byteLength);
    copyInto(bytes, 0, new Uint8Array(buffer, byteOffset, byteLength));
    return new Int32Array(bytes.buffer, bytes.byteOffset, length);
  }

  /** Writes waiting records into the lanes, as far as there is room, and gives back credit. Returns whether it wrote any. */
  deliver(): boolean {
    let isAny = false;
    this.isRestless = false;
    let left = 0;
    for (const stream of this.#waiting) {
      if (this.#deliverOf(stream)) isAny = true;
      if (stream.frames.length > 0) this.#waiting[left++] = stream;
    }
    this.#waiting.length = left;
    for (const task of this.#ending) this.#finish(task);
    return isAny;
  }

  /** Writes waiting records of one stream. Returns whether it wrote any. */
  #deliverOf(stream: Stream): boolean {
    const { frames, from } = stream;
    const slot = this.#host.bind(taskOf(from));
    if (slot < 0) return false;
    const origin = ordinalOf(this.#map, slot, contextOf(from));
    const target = this.#addresses.ordinalOf(stream.to);
    let bytes = 0;
    this.#full = 0;
    let count = 0;
    for (const words of frames) {
      const done = this.#write(origin, target, stream, words);
      bytes += 4 * done;
      if (done < words.length) {
        frames[count] = words.subarray(done);
        break;
      }
      count++;
    }
    for (const frame of frames.splice(0, count)) this.#buffers.give(frame);
    this.#noteRoom(stream, this.#lanes[origin]?.open[target] ?? 0);
    stream.bytes -= bytes;
    if (bytes > 0) this.#giveBack(stream, bytes);
    return bytes > 0;
  }

  /** Notes whether a stream waits for room in its lane. */
  #noteRoom(stream: Stream, lane: number): void {
    const { full } = stream;
    stream.full = this.#full;
    stream.needs = this.#needs;
    if (full !== 0 && full === lane && this.#full === 0) this.#kernel.laneWantRoom(lane, 0);
  }

  /** Whether deliver() would do something: a lane that had no room has some now. */
  get hasWork(): boolean {
    for (const { from, to, full, needs } of this.#waiting) {
      if (full === 0) continue;
      const [origin, target] = [this.#addresses.ordinalOf(from), this.#addresses.ordinalOf(to)];
      // Another lane may have replaced this lane.
      const lane = origin < 0 || this.#addresses.isSlotLeaving(origin) ? 0 : this.#lanes[origin]?.open[target];
      if (lane === full && this.#kernel.laneRoom(full) >= needs) return true;
    }
    return false;
  }

  /** Ends contexts of a task, and the task itself, once all their END frames have come and none of their records waits. */
  #finish(task: number): void {
    const { ends, streams } = this.#from(task);
    for (const [whose, left] of ends) {
      const isOf = (stream: Stream): boolean => (whose === ALL ? taskOf(stream.from) === task : stream.from === whose);
      if (left > 0 || this.#waiting.some(isOf)) continue;
      ends.delete(whose);
      if (whose === ALL) this.#host.end(task);
      else {
        streams.delete(whose);
        this.#host.retire(whose);
      }
    }
    if (ends.size === 0) this.#ending.delete(task);
  }

  /** Writes records of a frame into the lane of their pair, while there is room. @returns words of those written */
  #write(origin: number, target: number, stream: Stream, words: Int32Array): number {
    const lanes = this.#lanes[origin] ?? new ShmLanes(this.#kernel, this.#memory, this.#map, origin);
    this.#lanes[origin] = lanes;
    // Records for a target that has ended are dropped.
    const hasEnded = lanes.hasEnded(target);
    let at = 0;
    while (at < words.length && (hasEnded || this.#writeRecord(lanes, target, stream, words, at))) {
      stream.cut = undefined;
      at = wordBehind(words, at);
    }
    return at;
  }

  #writeRecord(lanes: ShmLanes, target: number, stream: Stream, words: Int32Array, at: number): boolean {
    const kind = kindAt(words, at) as number;
    if (kind === KIND_SWITCH) return lanes.close(target) || this.#noRoom(lanes.open[target] as number, SWITCH_BYTES);
    const { cut } = stream;
    const length = cut?.body.length ?? lengthAt(words, at);
    const state = lanes.ensure(target, length);
    const lane = lanes.open[target] as number;
    if (state === LANE_FULL) return this.#noRoom(lane, SWITCH_BYTES);
    if (state === LANE_READY && cut === undefined && kind !== KIND_RTS) {
      // Nearly all records: without an object for each.
      const pointer = this.#kernel.laneReserve(lane, length);
      if (pointer === 0) return this.#noRoom(lane, length);
      copyBody(words, at, this.#memory, pointer);
      this.#commit(target, lane, kind, length, metaAt(words, at));
      return true;
    }
    const record = cut ?? recordAt(words, at);
    if (state === LANE_READY) return this.#put(target, lane, record);
    // A request to send can't be cut into packets: it waits for memory.
    if (state === LANE_NO_MEMORY && lane !== 0 && kind !== KIND_RTS)
      return this.#writePackets(lanes, target, lane, stream, record);
    this.isRestless = true;
    return false;
  }

  /** Writes a record that its lane does not take whole, as packets. False: no room for all of them. */
  #writePackets(lanes: ShmLanes, target: number, lane: number, stream: Stream, whole: LaneRecord): boolean {
    const most = lanes.recordBodyMax(lane);
    let record = begun(whole);
    for (;;) {
      const { body } = record;
      if (!this.#put(target, lane, { ...record, body: body.subarray(0, most) })) {
        // The rest of a record that is being cut has bytes of its own: a record of 6 MiB may be cut 130,000 times.
        stream.cut = stream.cut === undefined ? { ...record, body: body.slice() } : record;
        return false;
      }
      if (body.length <= most) return true;
      record = { kind: KIND_MORE, meta: 0, body: body.subarray(most) };
    }
  }

  /** Writes a record into a lane that takes it whole; false: there is no room. */
  #put(target: number, lane: number, { kind, meta, body }: LaneRecord): boolean {
    const pointer = this.#kernel.laneReserve(lane, body.length);
    if (pointer === 0) return this.#noRoom(lane, body.length);
    copyInto(this.#memory.bytes, pointer, body);
    this.#commit(target, lane, kind, body.length, meta);
    return true;
  }

  #commit(target: number, lane: number, kind: number, length: number, meta: number): void {
    this.#host.hold(taskAt(this.#map, target));
    this.#kernel.laneCommit(lane, kind, length, meta);
  }

  /** A lane has no room for a record. The target rings once it has freed space. @returns false */
  #noRoom(lane: number, bytes: number): boolean {
    this.#kernel.laneWantRoom(lane, 1);
    this.#full = lane;
    this.#needs = bytes;
    return false;
  }

  /** Adds to the credit that a stream's origin is due, and gives the sum back once it has reached CREDIT. */
  #giveBack(stream: Stream, bytes: number): void {
    stream.credit += bytes;
    if (stream.credit < CREDIT) return;
    this.#send(stream.to, stream.from, { credit: stream.credit });
    stream.credit = 0;
  }
}
