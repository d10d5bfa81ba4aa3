// What other tasks have said: records that come are written into the lanes that stand for theirs in this memory. What has no
// room waits, bounded: its sender has a window, and is told what has gone into lanes.

import { KIND_MORE, KIND_RTS, KIND_SWITCH, LANE_BYTES_GROWN } from "../../../assembly/layout.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import type { MemoryMap } from "../../memory/map.js";
import { endpointCount } from "../../node/address.js";
import { ShmLanes } from "../shm/lanes.js";
import { LANE_NO_MEMORY, LANE_READY } from "../transport.js";
import type { Pipe } from "./frames.js";
import { begun, CREDIT_BYTES, isOver, type LaneRecord, NO_REST, type Rest, recordsIn } from "./records.js";

/** Bytes that a target gives back at once. */
const CREDIT = CREDIT_BYTES / 4;

/** Records of a pair that wait, and their bytes in frames. */
interface Line {
  readonly records: LaneRecord[];
  bytes: number;
}

/** What has come from one task. */
interface Incoming {
  /** Records that had no room yet, for each pair of origin and target. */
  readonly waiting: Map<number, Line>;
  /** Bytes that have gone into lanes and are not given back yet, for each pair. */
  readonly credits: Map<number, number>;
  /** What is still to come of a message in packets, for each pair where one has begun. */
  readonly rests: Map<number, Rest>;
  /** Of its contexts by ordinal, and of the task under ALL: in how many streams it has still to say that it ends. */
  readonly ends: Map<number, number>;
}

const ALL = -1;

/** Who is told of ends. */
export interface IngressHost {
  /** All that a task has said is there: it has ended. */
  end(task: number): void;
  /** The same of a context of another task. */
  retire(ordinal: number): void;
}

export class Ingress {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #endpoints: number;
  /** Bytes of a pair's records that may wait when more come: whoever gives heed to the window has no more on their way. */
  readonly #waitingMax: number;
  readonly #pipe: Pick<Pipe, "send" | "flush">;
  readonly #host: IngressHost;
  readonly #incoming = new Map<number, Incoming>();
  /** Lanes that are written in the place of other tasks' contexts, by ordinal. */
  readonly #lanes: ShmLanes[] = [];

  constructor(kernel: Kernel, memory: Memory, map: MemoryMap, pipe: Pick<Pipe, "send" | "flush">, host: IngressHost) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#endpoints = endpointCount(map);
    // A window, and what two lanes hold: in one batch, and when a context closes.
    this.#waitingMax = CREDIT_BYTES + 2 * Math.max(map.laneBytes, LANE_BYTES_GROWN);
    this.#pipe = pipe;
    this.#host = host;
  }

  #from(task: number): Incoming {
    let incoming = this.#incoming.get(task);
    if (incoming === undefined) {
      incoming = { waiting: new Map(), credits: new Map(), rests: new Map(), ends: new Map() };
      this.#incoming.set(task, incoming);
    }
    return incoming;
  }

  /**
   * A task says in one stream that its context has ended, or all of it.
   * @param streams in how many it says so
   * @returns false: it can't be so many
   */
  ends(task: number, from: number, isTask: boolean, streams: number): boolean {
    const { contexts } = this.#map;
    if (streams < 1 || streams > (isTask ? contexts ** 2 : contexts)) return false;
    const { ends } = this.#from(task);
    const whose = isTask ? ALL : from;
    ends.set(whose, (ends.get(whose) ?? streams) - 1);
    return true;
  }

  /** A task has ended: what has come of it, and is in no lane, goes nowhere. */
  forget(task: number): void {
    this.#incoming.delete(task);
  }

  /** A context of this task has closed: lanes to it that nobody else frees. */
  reclaim(ordinal: number): void {
    for (const lanes of this.#lanes) lanes?.reclaim(ordinal);
  }

  /** Records that have come: behind those of their pair. False: they are none. */
  file(task: number, from: number, to: number, bytes: Uint8Array): boolean {
    const { waiting, rests } = this.#from(task);
    const pair = this.#pairOf(from, to);
    const line = waiting.get(pair) ?? { records: [], bytes: 0 };
    if (line.bytes > this.#waitingMax) return false;
    const read = recordsIn(bytes, rests.get(pair) ?? NO_REST);
    if (read === undefined) return false;
    const { records, rest } = read;
    if (isOver(rest)) rests.delete(pair);
    else rests.set(pair, rest);
    for (const record of records) line.records.push(record);
    line.bytes += bytes.length;
    waiting.set(pair, line);
    return true;
  }

  /** Writes what waits into the lanes, as far as there is room; gives back what went in. */
  deliver(): void {
    let hasGivenBack = false;
    for (const [task, incoming] of this.#incoming) {
      for (const [pair, line] of incoming.waiting) {
        const { records } = line;
        const target = pair % this.#endpoints;
        let count = 0;
        let bytes = 0;
        for (; count < records.length; count++) {
          if (!this.#write(Math.floor(pair / this.#endpoints), target, records, count)) break;
          bytes += (records[count] as LaneRecord).counts;
        }
        line.bytes -= bytes;
        if (count === records.length) incoming.waiting.delete(pair);
        else if (count > 0) records.splice(0, count);
        if (bytes > 0 && this.#giveBack(incoming, pair, bytes)) hasGivenBack = true;
      }
      if (incoming.ends.size > 0) this.#finish(task, incoming);
    }
    // Who waits for it may be silent until then, and nothing else may be said to him.
    if (hasGivenBack) this.#pipe.flush();
  }

  /** Contexts of a task have said that they end, and the task itself: behind what waits of them, that is so. */
  #finish(task: number, { waiting, ends }: Incoming): void {
    for (const [ordinal, left] of ends) {
      const isOf = (pair: number) => ordinal === ALL || Math.floor(pair / this.#endpoints) === ordinal;
      if (left > 0 || [...waiting.keys()].some(isOf)) continue;
      ends.delete(ordinal);
      if (ordinal === ALL) this.#host.end(task);
      else this.#host.retire(ordinal);
    }
  }

  /** Writes a record of a list into the lane of their pair; false: there is no room. */
  #write(origin: number, target: number, records: LaneRecord[], place: number): boolean {
    this.#lanes[origin] ??= new ShmLanes(this.#kernel, this.#memory, this.#map, origin);
    const lanes = this.#lanes[origin];
    // What comes for one that has closed goes nowhere.
    if (lanes.hasEnded(target)) return true;
    const record = records[place] as LaneRecord;
    if (record.kind === KIND_SWITCH) return lanes.close(target);
    const state = lanes.ensure(target, record.body.length);
    const lane = lanes.open[target] as number;
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
      // The window counts it once: with the last.
      record = { kind: KIND_MORE, meta: 0, body: record.body.subarray(most), counts: record.counts };
    }
    records[place] = record;
    return false;
  }

  /** Writes a record into a lane that takes it; false: there is no room. */
  #put(lane: number, kind: number, meta: number, body: Uint8Array): boolean {
    const at = this.#kernel.laneReserve(lane, body.length);
    if (at === 0) return false;
    this.#memory.bytes.set(body, at);
    this.#kernel.laneCommit(lane, kind, body.length, meta);
    return true;
  }

  /** Whether so much has gone into a lane that its sender is told. */
  #giveBack({ credits }: Incoming, pair: number, bytes: number): boolean {
    const credit = (credits.get(pair) ?? 0) + bytes;
    credits.set(pair, credit < CREDIT ? credit : 0);
    if (credit < CREDIT) return false;
    this.#pipe.send(pair % this.#endpoints, Math.floor(pair / this.#endpoints), { credit });
    return true;
  }

  #pairOf(origin: number, target: number): number {
    return origin * this.#endpoints + target;
  }
}
