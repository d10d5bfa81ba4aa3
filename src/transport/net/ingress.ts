// Ingress: records that come from other nodes are written into the lanes that stand for their origins in this memory. What
// has no room waits, bounded: its sender has a credit, and is told what has gone into lanes.

import { KIND_MORE, KIND_RTS, KIND_SWITCH, LANE_BYTES_GROWN } from "../../../assembly/layout.js";
import { contextOf, type Endpoint, taskOf } from "../../core/endpoint.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { type MemoryMap, ordinalOf } from "../../memory/map.js";
import type { Addresses } from "../../node/address.js";
import { ShmLanes } from "../shm/lanes.js";
import { LANE_FULL, LANE_NO_MEMORY, LANE_READY } from "../transport.js";
import type { SendFrame } from "./frames.js";
import { begun, CREDIT_BYTES, isOver, type LaneRecord, NO_REST, type Rest, recordsIn } from "./records.js";

/** Bytes that a target gives back at once. */
const CREDIT = CREDIT_BYTES / 4;

/** What has come in one stream, from a context of another node to one of this node. */
interface Stream {
  readonly from: Endpoint;
  readonly to: Endpoint;
  /** Records that had no room yet, and their bytes in frames. */
  records: LaneRecord[];
  bytes: number;
  /** Bytes that have gone into the lane and are not given back yet. */
  credit: number;
  /** What is still to come of a message in packets. */
  rest: Rest;
  /** The lane that had no room for the next record or packet, and the bytes of that; 0: it was not that. */
  full: number;
  needs: number;
}

/** What has come from one task. */
interface Incoming {
  /** By origin's context, then by target. */
  readonly streams: Map<Endpoint, Map<Endpoint, Stream>>;
  /** Of its contexts by endpoint, and of the task under ALL: in how many streams it has still to say that it ends. */
  readonly ends: Map<number, number>;
}

const ALL = -1;
/** Bytes of the body of a record that names the next lane, or none. */
const SWITCH_BYTES = 8;

/** What ingress tells the agent. */
export interface IngressHost {
  /** The slot of a task, which gets one if it has none; negative: there is none for it now. */
  bind(task: number): number;
  /** All that a task has said is there: it has ended. */
  end(task: number): void;
  /** The same of a context of another node's task. */
  retire(endpoint: Endpoint): void;
}

export class Ingress {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: Addresses;
  /** Bytes of a stream's records that may wait when more come: a sender that minds its credit has no more on their way. */
  readonly #waitingMax: number;
  readonly #send: SendFrame;
  readonly #host: IngressHost;
  readonly #incoming = new Map<number, Incoming>();
  /** Streams whose records wait for room, or for a slot. */
  readonly #waiting = new Set<Stream>();
  /** The lane that has just had no room, and for how much. */
  #full = 0;
  #needs = 0;
  /** Lanes that are written in the place of other nodes' contexts, by ordinal. */
  readonly #lanes: (ShmLanes | undefined)[] = [];

  constructor(
    kernel: Kernel,
    memory: Memory,
    map: MemoryMap,
    addresses: Addresses,
    send: SendFrame,
    host: IngressHost,
  ) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#addresses = addresses;
    // A credit, and what two lanes hold: in one batch, and when a context closes.
    this.#waitingMax = CREDIT_BYTES + 2 * Math.max(map.laneBytes, LANE_BYTES_GROWN);
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
   * A task says in one stream that its context has ended, or all of it.
   * @param streams in how many it says so
   * @returns false: it can't be so many
   */
  ends(from: Endpoint, isTask: boolean, streams: number): boolean {
    const { contexts, locals } = this.#map;
    if (streams < 1 || streams > locals * (isTask ? contexts ** 2 : contexts)) return false;
    const { ends } = this.#from(taskOf(from));
    const whose = isTask ? ALL : from;
    ends.set(whose, (ends.get(whose) ?? streams) - 1);
    return true;
  }

  /** The slot of a task is given back: of its streams, those in which nothing is under way are forgotten. */
  prune(task: number): void {
    if (!this.isBusy(task)) this.#incoming.delete(task);
  }

  /** A task has ended: what has come of it, and is in no lane, goes nowhere. */
  forget(task: number): void {
    this.#incoming.delete(task);
    for (const stream of this.#waiting) if (taskOf(stream.from) === task) this.#waiting.delete(stream);
  }

  /** The slot of an ordinal is given back: its lanes are. */
  release(ordinal: number): void {
    this.#lanes[ordinal] = undefined;
  }

  /** Gives up the lanes of a context of another node; false: some have no room to say so. What comes later waits. */
  close(ordinal: number): boolean {
    const lanes = this.#lanes[ordinal];
    if (lanes === undefined) return true;
    let isClosed = true;
    for (const [target, lane] of lanes.open.entries()) if (lane !== 0 && !lanes.close(target)) isClosed = false;
    return isClosed;
  }

  /** Whether something of a task is incomplete: a message in packets, records that wait, an end. */
  isBusy(task: number): boolean {
    const incoming = this.#incoming.get(task);
    if (incoming === undefined) return false;
    if (incoming.ends.size > 0) return true;
    for (const targets of incoming.streams.values()) {
      for (const stream of targets.values()) if (stream.records.length > 0 || !isOver(stream.rest)) return true;
    }
    return false;
  }

  /** Returns to a task all credit that it is owed. */
  settle(task: number): void {
    for (const targets of this.#incoming.get(task)?.streams.values() ?? []) {
      for (const stream of targets.values()) {
        if (stream.credit > 0) this.#send(stream.to, stream.from, { credit: stream.credit });
        stream.credit = 0;
      }
    }
  }

  /** A context of this node has closed: lanes to it that no other thread frees. */
  reclaim(ordinal: number): void {
    for (const lanes of this.#lanes) lanes?.reclaim(ordinal);
  }

  /** Records that have come: behind those of their stream. False: they are none. */
  file(from: Endpoint, to: Endpoint, bytes: Uint8Array): boolean {
    const { streams } = this.#from(taskOf(from));
    const targets = streams.get(from) ?? new Map<Endpoint, Stream>();
    const known = targets.get(to);
    if (known !== undefined && known.bytes > this.#waitingMax) return false;
    const read = recordsIn(bytes, known?.rest ?? NO_REST);
    if (read === undefined) return false;
    const stream = known ?? { from, to, records: [], bytes: 0, credit: 0, rest: NO_REST, full: 0, needs: 0 };
    if (known === undefined) streams.set(from, targets.set(to, stream));
    stream.rest = read.rest;
    for (const record of read.records) stream.records.push(record);
    stream.bytes += bytes.length;
    if (stream.records.length > 0) this.#waiting.add(stream);
    return true;
  }

  /** Writes what waits into the lanes, as far as there is room; gives back what went in. Returns whether any did. */
  deliver(): boolean {
    let isAny = false;
    for (const stream of this.#waiting) {
      const { records, from } = stream;
      const slot = this.#host.bind(taskOf(from));
      if (slot < 0) continue;
      const origin = ordinalOf(this.#map, slot, contextOf(from));
      const target = this.#addresses.ordinalOf(stream.to);
      let count = 0;
      let bytes = 0;
      this.#full = 0;
      for (; count < records.length; count++) {
        if (!this.#write(origin, target, records, count)) break;
        bytes += (records[count] as LaneRecord).counts;
      }
      this.#noteRoom(stream, this.#lanes[origin]?.open[target] ?? 0);
      stream.bytes -= bytes;
      if (count === records.length) {
        stream.records = [];
        this.#waiting.delete(stream);
      } else if (count > 0) records.splice(0, count);
      if (bytes > 0) this.#giveBack(stream, bytes);
      if (bytes > 0) isAny = true;
    }
    for (const [task, incoming] of this.#incoming) if (incoming.ends.size > 0) this.#finish(task, incoming);
    return isAny;
  }

  /** Notes whether a stream waits for room in its lane. */
  #noteRoom(stream: Stream, lane: number): void {
    const { full } = stream;
    stream.full = this.#full;
    stream.needs = this.#needs;
    if (full !== 0 && full === lane && this.#full === 0) this.#kernel.laneWantRoom(lane, 0);
  }

  /** Whether deliver() would do something: there is room by now in a lane that had none. */
  get hasWork(): boolean {
    for (const { from, to, full, needs } of this.#waiting) {
      if (full === 0) continue;
      const [origin, target] = [this.#addresses.ordinalOf(from), this.#addresses.ordinalOf(to)];
      // Another lane may stand there by now.
      const lane = origin < 0 ? 0 : this.#lanes[origin]?.open[target];
      if (lane === full && this.#kernel.laneRoom(full) >= needs) return true;
    }
    return false;
  }

  /** Contexts of a task have said that they end, and the task itself: behind what waits of them, that is so. */
  #finish(task: number, { ends, streams }: Incoming): void {
    for (const [whose, left] of ends) {
      const isOf = (stream: Stream): boolean => (whose === ALL ? taskOf(stream.from) === task : stream.from === whose);
      if (left > 0 || [...this.#waiting].some(isOf)) continue;
      ends.delete(whose);
      if (whose === ALL) this.#host.end(task);
      else {
        streams.delete(whose);
        this.#host.retire(whose);
      }
    }
  }

  /** Writes a record of a list into the lane of their pair; false: there is no room. */
  #write(origin: number, target: number, records: LaneRecord[], place: number): boolean {
    const lanes = this.#lanes[origin] ?? new ShmLanes(this.#kernel, this.#memory, this.#map, origin);
    this.#lanes[origin] = lanes;
    // What comes for one that has closed goes nowhere.
    if (lanes.hasEnded(target)) return true;
    const record = records[place] as LaneRecord;
    if (record.kind === KIND_SWITCH)
      return lanes.close(target) || this.#noRoom(lanes.open[target] as number, SWITCH_BYTES);
    const state = lanes.ensure(target, record.body.length);
    const lane = lanes.open[target] as number;
    if (state === LANE_FULL) return this.#noRoom(lane, SWITCH_BYTES);
    // What is offered has nothing to cut up: it waits for memory.
    if (state === LANE_NO_MEMORY && lane !== 0 && record.kind !== KIND_RTS)
      return this.#writePackets(lane, lanes.recordBodyMax(lane), records, place);
    return state === LANE_READY && this.#put(lane, record.kind, record.meta, record.body);
  }

  /** Writes a record that its lane does not take whole as packets of at most `most` bytes; false: what is left has no room. */
  #writePackets(lane: number, most: number, records: LaneRecord[], place: number): boolean {
    let record = begun(records[place] as LaneRecord);
    while (this.#put(lane, record.kind, record.meta, record.body.subarray(0, most))) {
      if (record.body.length <= most) return true;
      // The credit counts it once: with the last.
      record = { kind: KIND_MORE, meta: 0, body: record.body.subarray(most), counts: record.counts };
    }
    records[place] = record;
    return false;
  }

  /** Writes a record into a lane that takes it; false: there is no room. */
  #put(lane: number, kind: number, meta: number, body: Uint8Array): boolean {
    const at = this.#kernel.laneReserve(lane, body.length);
    if (at === 0) {
      return this.#noRoom(lane, body.length);
    }
    this.#memory.bytes.set(body, at);
    this.#kernel.laneCommit(lane, kind, body.length, meta);
    return true;
  }

  /** A lane has no room for a record. The target rings once it has freed space. @returns false */
  #noRoom(lane: number, bytes: number): boolean {
    this.#kernel.laneWantRoom(lane, 1);
    this.#full = lane;
    this.#needs = bytes;
    return false;
  }

  /** Tells the sender of a stream what has gone into the lane, once that is much. */
  #giveBack(stream: Stream, bytes: number): void {
    stream.credit += bytes;
    if (stream.credit < CREDIT) return;
    this.#send(stream.to, stream.from, { credit: stream.credit });
    stream.credit = 0;
  }
}
