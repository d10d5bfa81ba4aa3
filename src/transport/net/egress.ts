// Egress: takes the records of the node's contexts out of the blocks that stand for tasks of other nodes. It sends newly
// committed records in frames, each of one pair of contexts, and writes them into the packets in which they leave. CREDIT_BYTES
// may be on their way for a pair. Then its lane is not read until the target gives credit back.
//
// A turn looks at the blocks of all bound slots. So a frame that comes causes no turn, and a credit in it a look at one block.

import * as L from "../../../assembly/layout.js";
import { type Endpoint, taskOf } from "../../core/endpoint.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, engineSlot, isClosed, type MemoryMap, taskSlot } from "../../memory/map.js";
import { endpointCount, type SlotTable, taskAt } from "../../node/address.js";
import type { FrameMemory, Pipe } from "./frames.js";
import type { NetParts } from "./net-parts.js";
import { CREDIT_BYTES, isSwitch, PREFIX_BYTES, putRecord, recordBytes } from "./records.js";

const EVENT_WORDS = L.EVENT_SIZE >>> 2;
/** Words of an event: pointer to the body, and ordinal of the origin. */
const EVENT_BODY = 2;
const EVENT_ORIGIN = 3;
const NO_ORIGIN = -1;
export class Egress {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: SlotTable;
  readonly #endpoints: number;
  /** Ordinals of own contexts are below this number. */
  readonly #own: number;
  readonly #pipe: Pipe;
  readonly #note: (from: Endpoint, to: Endpoint) => boolean;
  /** By own endpoint, then by target: bytes of records on their way. The counts outlive the target's slot. */
  readonly #inFlight = new Map<Endpoint, Map<Endpoint, number>>();
  /** Pairs whose lane is not read, because their credit is used up. */
  readonly #heldBack = new Set<number>();
  /** Next lanes of origins that replace theirs within a batch, each before its origin. */
  readonly #switches: number[] = [];
  /** The events of the frame that is written, bytes of the first one's body that have gone, and bytes of the frame. */
  #begin = 0;
  #end = 0;
  #skip = 0;
  #room = 0;

  /** @param note notes that a frame goes to a context. False: it has ended */
  constructor(
    { kernel, memory, map, addresses }: NetParts,
    pipe: Pipe,
    note: (from: Endpoint, to: Endpoint) => boolean,
  ) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#addresses = addresses;
    this.#endpoints = endpointCount(map);
    this.#own = map.locals * map.contexts;
    this.#pipe = pipe;
    this.#note = note;
  }

  /**
   * Takes back credit for bytes that have gone into the target's lanes, and sends records that lacked credit. False: fewer
   * bytes were on their way.
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
    if (this.#heldBack.has(pair)) {
      this.#readAgain(pair);
      this.#flush(target);
    }
    return true;
  }

  /** A task has ended, and gives back no more credit. */
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

  /** Whether lanes to a target hold records that lack credit; with `hasAny`, any records. */
  isBusy(target: number, hasAny: boolean): boolean {
    for (let origin = 0; origin < this.#own; origin++) {
      if (this.#heldBack.has(this.#pairOf(origin, target))) return true;
    }
    const block = contextBlock(this.#map, target);
    return hasAny && this.#hasSome(block) && this.#peek(block) !== 0;
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

  /**
   * Sends committed records, as far as the credit goes. Returns whether there were any.
   * @param ending origin whose records are sent even beyond its credit
   */
  turn(ending = NO_ORIGIN): boolean {
    let hasSent = false;
    for (let target = this.#own; target < this.#endpoints; target++) {
      if (this.#flush(target, ending)) hasSent = true;
    }
    return hasSent;
  }

  /** Sends all committed records of an origin, even beyond its credit. */
  flushAllOf(origin: number): void {
    for (const pair of this.#heldBack) if (Math.floor(pair / this.#endpoints) === origin) this.#readAgain(pair);
    this.turn(origin);
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

  /** Whether a lane to a block is to be attended: most blocks have no such lane. Only own contexts have lanes to a block. */
  #hasSome(block: number): boolean {
    for (let word = 0; word << 5 < this.#own; word++) {
      // SYNC ready (look): pairs with publish() of the kernels.
      if (this.#kernel.loadWord(block + L.CONTEXT_READY_OFFSET + (word << 2)) !== 0) return true;
    }
    return false;
  }

  /** Whether a block stands for a target that goes on, and a lane to it is to be attended. */
  #isReady(target: number, block: number): boolean {
    return this.#addresses.table[target] !== L.NONE && this.#hasSome(block) && !this.#hasEnded(target);
  }

  /** As peek() of the kernels: whether a block has records. The agent sees notices in another way. */
  #peek(block: number): number {
    const notice = this.#kernel.loadWord(engineSlot(this.#map) + L.TASK_NOTICE_OFFSET);
    this.#memory.words[(block + L.CONTEXT_NOTICE_SEEN_OFFSET) >>> 2] = notice;
    return this.#kernel.peek(block);
  }

  #hasEnded(target: number): boolean {
    const slot = taskSlot(this.#map, taskAt(this.#map, target));
    // SYNC task-state (look): the agent itself marks tasks of other nodes as ended.
    if (this.#kernel.loadWord(slot + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED) return true;
    return isClosed(this.#kernel, this.#map, target);
  }

  /** Like turn(), for the block of one target. */
  #flush(target: number, ending = NO_ORIGIN): boolean {
    const block = contextBlock(this.#map, target);
    if (!this.#isReady(target, block)) return false;
    let hasSent = false;
    for (;;) {
      const count = this.#kernel.advance(block, 1) & L.ADVANCE_EVENTS_MASK;
      if (count === 0) break;
      hasSent = true;
      this.#sendBatch(block, count, target, ending);
    }
    this.#peek(block); // frees the taken records
    return hasSent;
  }

  /** Sends a batch of events of a block and takes their records, except records of pairs that are held back now. */
  #sendBatch(block: number, count: number, target: number, ending: number): void {
    const { words } = this.#memory;
    const end = ((block + L.CONTEXT_EVENTS_OFFSET) >>> 2) + count * EVENT_WORDS;
    const switches = this.#switches;
    // The events of a lane follow each other.
    for (let event = (block + L.CONTEXT_EVENTS_OFFSET) >>> 2, next = event; event < end; event = next) {
      const origin = words[event + EVENT_ORIGIN] as number;
      while (next < end && words[next + EVENT_ORIGIN] === origin) next += EVENT_WORDS;
      if (origin !== ending && this.#onTheirWay(origin, target) >= CREDIT_BYTES) {
        this.#heldBack.add(this.#pairOf(origin, target));
        this.#kernel.lanePause(this.#kernel.laneOf(block, origin), words[event + EVENT_BODY] as number);
        continue;
      }
      this.#sendRecords(origin, target, event, next);
      // A switch is the last record of its lane.
      const last = next - EVENT_WORDS;
      if (isSwitch(words[last] as number)) switches.push(this.#word(words[last + EVENT_BODY] as number), origin);
    }
    this.#kernel.release(block);
    while (switches.length > 0) {
      this.#kernel.laneSwitch(this.#map.job, block, switches.pop() as number, switches.pop() as number);
    }
  }

  /** Sends the records of events, which have one origin, in frames that go in one packet each, as far as records fit in one. */
  #sendRecords(origin: number, target: number, first: number, end: number): void {
    const from = this.#addresses.endpointAt(origin);
    const to = this.#addresses.endpointAt(target);
    this.#begin = first;
    this.#skip = 0;
    while (this.#begin < end) {
      const most = this.#pipe.recordsMax(to);
      let bytes = this.#sizeOf(this.#begin, this.#skip);
      let next = this.#begin + EVENT_WORDS;
      const isCut = bytes > most && this.#kindOf(this.#begin) === L.KIND_MORE;
      if (isCut) bytes = most;
      for (; next < end && bytes < most; next += EVENT_WORDS) {
        const more = this.#sizeOf(next, 0);
        if (bytes + more > most) break;
        bytes += more;
      }
      this.#end = next;
      this.#room = bytes;
      if (bytes > 0) {
        this.#sent(from, to, bytes);
        if (this.#note(from, to)) this.#pipe.sendRecords(from, to, bytes, this.#fill);
      }
      if (isCut) this.#skip += bytes - PREFIX_BYTES;
      else {
        this.#skip = 0;
        this.#begin = next;
      }
    }
  }

  #kindOf(event: number): number {
    return ((this.#memory.words[event] as number) >>> L.RECORD_KIND_SHIFT) & L.RECORD_KIND_MASK;
  }

  /**
   * Bytes of an event's record in a frame. The other node replaces its lanes by itself: of switch records, only the end of a
   * lane is sent.
   * @param skip bytes of its body that have gone
   */
  #sizeOf(event: number, skip: number): number {
    const { words } = this.#memory;
    const commit = words[event] as number;
    if (!isSwitch(commit)) return recordBytes((commit & L.RECORD_LENGTH_MASK) - skip);
    return this.#word(words[event + EVENT_BODY] as number) === 0 ? recordBytes(0) : 0;
  }

  /** Writes the records of the events of the frame, each behind its prefix. */
  readonly #fill = (frame: FrameMemory, first: number): void => {
    const { words } = this.#memory;
    let skip = this.#skip;
    let at = first;
    for (let event = this.#begin; event < this.#end; event += EVENT_WORDS) {
      if (this.#sizeOf(event, skip) === 0) continue;
      const commit = words[event] as number;
      const body = ((words[event + EVENT_BODY] as number) >>> 0) + skip;
      const length = isSwitch(commit) ? 0 : Math.min((commit & L.RECORD_LENGTH_MASK) - skip, this.#room - PREFIX_BYTES);
      at = putRecord(frame, at, this.#kindOf(event), words[event + 1] as number, this.#memory, body, length);
      skip = 0;
    }
  };

  #pairOf(origin: number, target: number): number {
    return origin * this.#endpoints + target;
  }

  #word(pointer: number): number {
    return (this.#memory.words[pointer >>> 2] as number) >>> 0;
  }
}
