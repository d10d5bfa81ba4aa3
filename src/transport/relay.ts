// Between tasks that share no memory: each has one of its own, laid out for all tasks, and in it a relay that stands for
// all the others. Contexts, lanes and the engine are those of shared memory.
//
//   memory of task 0                                          memory of task 1
//   context 0.0 ─► lane ─► block of 1.0 ─► relay ══ courier: records ══► relay ─► lane ─► block of 1.0 ─► context 1.0
//   injection FIFO of 0.0 ──────────────► relay ══ courier: descriptor ► relay ─► performs it on a region of task 1
//
// Records go as they are: those that were committed since, in one letter for each pair of contexts. WINDOW bytes of them may
// be on their way for a pair; then its lane is not read until some are given back. A pair that is held back holds up no
// other. What goes by injection FIFOs is in errands.ts, and by windows in chains.ts.
//
// What comes may be wrong (a network is not trusted): a letter that is, is dropped and told of to the courier.
import {
  ADVANCE_EVENTS_MASK,
  CONTEXT_EVENTS_OFFSET,
  EVENT_SIZE,
  FIRST_PREFIX_SIZE,
  INJECTION_STAGED_OFFSET,
  KIND_FIRST,
  KIND_MESSAGE,
  KIND_MORE,
  KIND_RTS,
  KIND_SWITCH,
  LANE_BYTES_GROWN,
  LANE_TARGET_OFFSET,
  MESSAGE_BYTES_MAX,
  META_HEADER_SHIFT,
  RECORD_KIND_MASK,
  RECORD_KIND_SHIFT,
  RECORD_LENGTH_MASK,
  RECV_IMMEDIATE_MAX,
  RTS_BYTES_OFFSET,
  RTS_PORTION_OFFSET,
  RTS_SIZE,
  TRANSFER_DONE,
  TRANSFER_LATER,
} from "../../assembly/layout.js";
import { alignUp } from "../../assembly/seq.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { contextBlock, isClosed, type MemoryMap } from "../memory/map.js";
import { Chains } from "./chains.js";
import type { Courier, Letter } from "./courier.js";
import type { Desk } from "./desk.js";
import { Errands } from "./errands.js";
import { LANE_NO_MEMORY, LANE_READY, ShmLanes } from "./shm.js";

/** Bytes of records that may be on their way from a context to another; a batch may go beyond it. */
const WINDOW = 262144;
/** Bytes that a target gives back at once. */
const CREDIT = WINDOW / 4;
/** Words before each record in a letter: kind and bytes of the body, meta. */
const PREFIX_WORDS = 2;
const EVENT_WORDS = EVENT_SIZE >>> 2;
/** Words of an event: where the body is, and whose it is. */
const EVENT_BODY = 2;
const EVENT_ORIGIN = 3;
/** What goes from relay to relay; whatever asks for memory of the other task does not. */
const RELAYED_KINDS = [KIND_MESSAGE, KIND_FIRST, KIND_MORE, KIND_RTS, KIND_SWITCH];

/** A record on its way into a lane. */
interface LaneRecord {
  readonly kind: number;
  readonly meta: number;
  readonly body: Uint8Array;
  /** Bytes that it takes of the window. */
  readonly counts: number;
}

/** Bytes that are to come of a message in packets: before its handler is called, and behind that. No packet has of both. */
interface Rest {
  readonly prologue: number;
  readonly payload: number;
}

const NO_REST: Rest = { prologue: 0, payload: 0 };

/** What has come from one task. */
interface Incoming {
  /** Records that had no room yet, for each pair of origin and target. */
  readonly waiting: Map<number, LaneRecord[]>;
  /** And their bytes. */
  readonly waitingBytes: Map<number, number>;
  /** Bytes that have gone into lanes and are not given back yet, for each pair. */
  readonly credits: Map<number, number>;
  /** What is still to come of a message in packets, for each pair where one has begun. */
  readonly rests: Map<number, Rest>;
  /** Of its contexts by ordinal, and of all of them under ALL: to how many of ours they have said that they end. */
  readonly ends: Map<number, number>;
}

const ALL = -1;

/** What a relay needs of whoever starts tasks. */
export interface RelayHost {
  /** Marks a task as ended in this memory, and tells its contexts. */
  bury(task: number): void;
  /** Marks a context of another task as closed in this memory, and tells this task's contexts. */
  retire(ordinal: number): void;
  /** Ends this task's waits. */
  interrupt(): void;
}

export class Relay {
  /** The kernels for this task's client: what goes to another task goes through the relay. */
  readonly kernel: Kernel;
  readonly chains: Chains;
  readonly #inner: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  /** The task in whose memory it is. */
  readonly task: number;
  readonly #endpoints: number;
  /** Bytes of a pair's records that may wait when more come: whoever gives heed to the window has no more on their way. */
  readonly #waitingMax: number;
  readonly #host: RelayHost;
  readonly #courier: Courier;
  readonly #errands: Errands;
  /** Bytes of records on their way, for each pair of origin and target. */
  readonly #inFlight = new Map<number, number>();
  /** Pairs whose lane is not read, for so much is on its way. */
  readonly #heldBack = new Set<number>();
  readonly #incoming = new Map<number, Incoming>();
  readonly #ended = new Set<number>();
  /** Lanes that the relay writes in the place of other tasks' contexts, by ordinal. */
  readonly #lanes: ShmLanes[] = [];
  /** Ordinals of contexts of other tasks to which something was sent. */
  readonly #fresh = new Set<number>();
  #isScheduled = false;
  #wake = (): void => {};
  #closed = false;

  constructor(inner: Kernel, memory: Memory, map: MemoryMap, task: number, courier: Courier, host: RelayHost) {
    this.#inner = inner;
    this.#memory = memory;
    this.#map = map;
    this.task = task;
    this.#endpoints = map.tasks * map.contexts;
    // A window, and what two lanes hold: in one batch, and when a context closes.
    this.#waitingMax = WINDOW + 2 * Math.max(map.laneBytes, LANE_BYTES_GROWN);
    this.#host = host;
    this.#courier = courier;
    courier.hear = (from, to, letter) => this.#hear(from, to, letter);
    const hasEnded = (task: number) => this.#ended.has(task);
    const post = (from: number, to: number, letter: Letter): void => {
      if (!hasEnded(this.#taskOf(to))) courier.post(from, to, letter);
    };
    const errands = new Errands(inner, memory, map, task, hasEnded, post);
    this.#errands = errands;
    const chains = new Chains(inner, memory, map, task, post, () => courier.flush());
    this.chains = chains;
    const isHere = (ordinal: number): boolean => this.#taskOf(ordinal) === task;
    const ordinalOf = (context: number): number => (context - map.contextsBase) / map.contextSize;
    this.kernel = {
      ...callable(inner),
      laneSendWords: (lane, bytes, meta, a, b) => {
        const result = inner.laneSendWords(lane, bytes, meta, a, b);
        this.#sent(lane);
        return result;
      },
      laneCommit: (lane, kind, bytes, meta) => {
        inner.laneCommit(lane, kind, bytes, meta);
        this.#sent(lane);
      },
      laneReplace: (job, lane, capacity, recordMax) => {
        const fresh = inner.laneReplace(job, lane, capacity, recordMax);
        this.#sent(lane);
        return fresh;
      },
      // While this thread looks, nothing comes: one round is as good as many.
      advance: (context) => {
        this.#turn();
        return inner.advance(context, 1);
      },
      release: (context) => {
        inner.release(context);
        this.#deliver();
      },
      peek: (context) => {
        inner.peek(context); // frees what was handled
        this.#turn();
        return inner.peek(context);
      },
      perform: (job, descriptor, most) =>
        most === 0 && errands.isAway(descriptor) ? errands.check(descriptor) : inner.perform(job, descriptor, most),
      submit: (job, fifo, hasCallback) => {
        const staged = fifo + INJECTION_STAGED_OFFSET;
        if (!errands.isAway(staged)) return inner.submit(job, fifo, hasCallback);
        const result = errands.check(staged);
        return result === TRANSFER_DONE ? TRANSFER_LATER : result;
      },
      engineRun: (job, fifo, most) => {
        const left = errands.engineRun(job, fifo, most);
        courier.flush();
        return left;
      },
      chainWrite: (job, window) => (chains.isAway(window) ? chains.write(window) : inner.chainWrite(job, window)),
      chainNotice: (job, index, generation, offset, own, origin, result) => {
        if (isHere(origin)) return inner.chainNotice(job, index, generation, offset, own, origin, result);
        return chains.notice([index, generation, offset, own], origin, result);
      },
      chainRun: (job, context, most) => inner.chainRun(job, context, most) + chains.run(ordinalOf(context), most),
      chainPeek: (job, context) => inner.chainPeek(job, context) || Number(chains.hasWork(ordinalOf(context))),
      engineCall: (job, ordinal) => {
        if (isHere(ordinal)) inner.engineCall(job, ordinal);
        else chains.stop(ordinal);
        this.#wake();
      },
    };
  }

  /**
   * This task's client is there.
   * @param desk region of it, of DESK_BYTES, that nobody else uses
   * @param wake wakes whoever waits on this thread
   */
  serve(desk: Desk, wake: () => void): void {
    this.#errands.desk = desk;
    this.chains.desk = desk;
    this.#wake = wake;
  }

  /** A letter has come. */
  #hear(from: number, to: number, letter: Letter): boolean {
    const task = this.#taskOf(from);
    if (this.#closed || this.#ended.has(task)) return true;
    const isRight = this.#file(task, from, to, letter);
    this.#deliver();
    this.#courier.flush();
    this.#wake();
    return isRight;
  }

  #file(task: number, from: number, to: number, letter: Letter): boolean {
    if ("records" in letter) return this.#fileRecords(this.#from(task), from, to, letter.records);
    if ("ask" in letter) return this.#errands.answer(from, to, letter);
    if ("answer" in letter) return this.#errands.answered(task, letter.answer, letter.result, letter.data);
    if ("chain" in letter) return this.chains.hear(from, to, letter);
    if ("credit" in letter) return this.#credited(this.#pairOf(to, from), letter.credit);
    const { ends } = this.#from(task);
    const whose = letter.end === "task" ? ALL : from;
    ends.set(whose, (ends.get(whose) ?? 0) + 1);
    return true;
  }

  /** Bytes of a pair have arrived. False: so many were not on their way. */
  #credited(pair: number, bytes: number): boolean {
    const inFlight = this.#inFlight.get(pair) ?? 0;
    if (bytes > inFlight) return false;
    this.#inFlight.set(pair, inFlight - bytes);
    if (inFlight - bytes < WINDOW && this.#heldBack.has(pair)) {
      this.#readAgain(pair);
      this.#flush(WINDOW);
    }
    return true;
  }

  #readAgain(pair: number): void {
    this.#heldBack.delete(pair);
    const target = pair % this.#endpoints;
    const block = contextBlock(this.#map, target);
    const origin = Math.floor(pair / this.#endpoints);
    if (this.#inner.laneOf(block, origin) === 0) return;
    this.#inner.laneResume(block, origin);
    this.#fresh.add(target);
  }

  #from(task: number): Incoming {
    let incoming = this.#incoming.get(task);
    if (incoming === undefined) {
      incoming = { waiting: new Map(), waitingBytes: new Map(), credits: new Map(), rests: new Map(), ends: new Map() };
      this.#incoming.set(task, incoming);
    }
    return incoming;
  }

  /**
   * Another task has ended.
   * @param hasLeft whether it closed its client: then what it sent before is still delivered
   */
  ended(task: number, hasLeft: boolean): void {
    if (this.#ended.has(task)) return;
    if (this.#closed) {
      this.#courier.drop(task);
      return;
    }
    // What it says last comes by its own port.
    if (hasLeft && this.#courier.hears(task)) return;
    this.#end(task);
  }

  #end(task: number): void {
    this.#ended.add(task);
    this.#courier.drop(task);
    this.#incoming.delete(task);
    this.#errands.ended(task);
    this.#host.bury(task);
    this.#wake();
  }

  /** As of the courier. */
  get deathsTold(): boolean {
    return this.#courier.deathsTold;
  }

  /** Ends the wait in which this task is. */
  interrupt(): void {
    this.#host.interrupt();
    this.#wake();
  }

  /** A context of this task has closed: all others are told, behind what it has sent. */
  closeContext(ordinal: number): void {
    this.#flushAll();
    // What came for it goes nowhere, and where it had no room to say that it ends, nobody else frees its lane.
    for (let other = 0; other < this.#endpoints; other++) {
      this.#lanes[other]?.reclaim(ordinal);
      const block = contextBlock(this.#map, other);
      const isAway = this.#taskOf(other) !== this.task;
      if (isAway && this.#inner.laneOf(block, ordinal) !== 0) this.#inner.laneSwitch(this.#map.job, block, ordinal, 0);
    }
    for (let other = 0; other < this.#endpoints; other++) {
      const task = this.#taskOf(other);
      if (task !== this.task && !this.#ended.has(task)) this.#courier.post(ordinal, other, { end: "context" });
    }
    this.#courier.flush();
  }

  /** This task leaves the job: what it has sent goes out, and nothing is taken in any more. */
  close(): void {
    const { contexts } = this.#map;
    this.#flushAll();
    this.#closed = true;
    // To each context that may wait for it, from each that may have spoken to it: behind all that was said.
    for (const task of this.#courier.posted) {
      for (let pair = 0; pair < contexts ** 2; pair++) {
        const [from, to] = [Math.floor(pair / contexts), pair % contexts];
        this.#courier.post(this.task * contexts + from, task * contexts + to, { end: "task" });
      }
    }
    this.#courier.leave();
    this.#courier.flush();
  }

  // ── Out ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Something was committed in a lane. */
  #sent(lane: number): void {
    const target = this.#memory.words[(lane + LANE_TARGET_OFFSET) >>> 2] as number;
    if (this.#taskOf(target) === this.task) {
      this.#wake();
      return;
    }
    this.#fresh.add(target);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#flush(WINDOW);
    });
  }

  #turn(): void {
    if (this.#fresh.size > 0) this.#flush(WINDOW);
    this.#deliver();
  }

  /** Posts all that was committed, whatever is on its way. */
  #flushAll(): void {
    for (const pair of this.#heldBack) this.#readAgain(pair);
    this.#flush(Number.POSITIVE_INFINITY);
  }

  /** Posts what was committed, as far as the windows go. */
  #flush(window: number): void {
    if (this.#closed) return;
    let isFree = false;
    for (const target of this.#fresh) {
      const task = this.#taskOf(target);
      const block = contextBlock(this.#map, target);
      const isOver = this.#ended.has(task) || isClosed(this.#inner, this.#map, target);
      while (!isOver) {
        const count = this.#inner.advance(block, 1) & ADVANCE_EVENTS_MASK;
        if (count === 0) break;
        isFree = true;
        this.#post(block, count, target, window);
      }
      this.#fresh.delete(target);
      this.#inner.peek(block); // frees what was taken
    }
    this.#courier.flush();
    if (isFree) this.#wake();
  }

  /** Posts a batch of events of a block, and takes them out of it, but for those of pairs that are held back by now. */
  #post(block: number, count: number, target: number, window: number): void {
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
        this.#inner.lanePause(this.#inner.laneOf(block, origin), words[event + EVENT_BODY] as number);
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
      this.#courier.post(origin, target, { records });
    }
    this.#inner.release(block);
    for (let i = 0; i < switches.length; i += 2) {
      this.#inner.laneSwitch(this.#map.job, block, switches[i] as number, switches[i + 1] as number);
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
    const prefixes = new Int32Array(records.buffer);
    let at = 0;
    for (let event = first; event < end; event += EVENT_WORDS) {
      if (words[event + EVENT_ORIGIN] !== origin) continue;
      const commit = words[event] as number;
      const body = (words[event + EVENT_BODY] as number) >>> 0;
      // Over there lanes are replaced as that side needs it; only the end of one is told.
      if (isSwitch(commit) && this.#word(body) !== 0) continue;
      const length = isSwitch(commit) ? 0 : commit & RECORD_LENGTH_MASK;
      prefixes[at >>> 2] = commit - (commit & RECORD_LENGTH_MASK) + length;
      prefixes[(at >>> 2) + 1] = words[event + 1] as number;
      records.set(bytes.subarray(body, body + length), at + 4 * PREFIX_WORDS);
      at += recordBytes(length);
    }
    return records.subarray(0, at);
  }

  // ── In ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Records that have come: behind those of their pair. False: they are none. */
  #fileRecords(incoming: Incoming, from: number, to: number, bytes: Uint8Array): boolean {
    const { waiting, waitingBytes, rests } = incoming;
    const pair = this.#pairOf(from, to);
    const bytesBefore = waitingBytes.get(pair) ?? 0;
    if (bytesBefore > this.#waitingMax) return false;
    let rest = rests.get(pair) ?? NO_REST;
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const records: LaneRecord[] = [];
    for (let at = 0; at < bytes.length; ) {
      if (bytes.length - at < 4 * PREFIX_WORDS) return false;
      const commit = words.getUint32(at, true);
      const kind = (commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK;
      const length = commit & RECORD_LENGTH_MASK;
      const counts = recordBytes(length);
      if (bytes.length - at < counts || !RELAYED_KINDS.includes(kind)) return false;
      const body = bytes.subarray(at + 4 * PREFIX_WORDS, at + 4 * PREFIX_WORDS + length);
      const meta = words.getInt32(at + 4, true);
      const behind = restBehind(kind, meta, body, rest);
      if (behind === undefined) return false;
      rest = behind;
      records.push({ kind, meta, body, counts });
      at += counts;
    }
    if (isOver(rest)) rests.delete(pair);
    else rests.set(pair, rest);
    waitingBytes.set(pair, bytesBefore + bytes.length);
    const before = waiting.get(pair);
    if (before === undefined) waiting.set(pair, records);
    else for (const record of records) before.push(record);
    return true;
  }

  /** Writes what waits into the lanes, as far as there is room; gives back what went in. */
  #deliver(): void {
    if (this.#closed) return;
    let hasGivenBack = false;
    for (const [task, incoming] of this.#incoming) {
      for (const [pair, records] of incoming.waiting) {
        const target = pair % this.#endpoints;
        let count = 0;
        let bytes = 0;
        for (; count < records.length; count++) {
          if (!this.#write(Math.floor(pair / this.#endpoints), target, records, count)) break;
          bytes += (records[count] as LaneRecord).counts;
        }
        if (count === records.length) {
          incoming.waiting.delete(pair);
          incoming.waitingBytes.delete(pair);
        } else if (count > 0) {
          records.splice(0, count);
          incoming.waitingBytes.set(pair, (incoming.waitingBytes.get(pair) ?? 0) - bytes);
        }
        if (bytes > 0 && this.#giveBack(incoming, pair, bytes)) hasGivenBack = true;
      }
      if (incoming.ends.size > 0) this.#finish(task, incoming);
    }
    // Who waits for it may be silent until then, and nothing else may be said to him.
    if (hasGivenBack) this.#courier.flush();
  }

  /** Contexts of a task have said that they end, and the task itself: behind what waits of them, that is so. */
  #finish(task: number, { waiting, ends }: Incoming): void {
    const { contexts } = this.#map;
    for (const [ordinal, count] of ends) {
      const isLast = count >= (ordinal === ALL ? contexts ** 2 : contexts);
      const isOf = (pair: number) => ordinal === ALL || Math.floor(pair / this.#endpoints) === ordinal;
      if (!isLast || [...waiting.keys()].some(isOf)) continue;
      ends.delete(ordinal);
      if (ordinal === ALL) this.#end(task);
      else this.#host.retire(ordinal);
    }
  }

  /** Writes a record of a list into the lane of their pair; false: there is no room. */
  #write(origin: number, target: number, records: LaneRecord[], place: number): boolean {
    this.#lanes[origin] ??= new ShmLanes(this.#inner, this.#memory, this.#map, origin);
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
    const at = this.#inner.laneReserve(lane, body.length);
    if (at === 0) return false;
    this.#memory.bytes.set(body, at);
    this.#inner.laneCommit(lane, kind, body.length, meta);
    return true;
  }

  /** Whether so much has gone into a lane that its sender is told. */
  #giveBack({ credits }: Incoming, pair: number, bytes: number): boolean {
    const credit = (credits.get(pair) ?? 0) + bytes;
    credits.set(pair, credit < CREDIT ? credit : 0);
    if (credit < CREDIT) return false;
    this.#courier.post(pair % this.#endpoints, Math.floor(pair / this.#endpoints), { credit });
    return true;
  }

  #pairOf(origin: number, target: number): number {
    return origin * this.#endpoints + target;
  }

  #taskOf(ordinal: number): number {
    return Math.floor(ordinal / this.#map.contexts);
  }

  #word(pointer: number): number {
    return (this.#memory.words[pointer >>> 2] as number) >>> 0;
  }
}

/** Whether a record tells of another lane, or of the end of one. */
function isSwitch(commit: number): boolean {
  return ((commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK) === KIND_SWITCH;
}

/** Bytes of a record in a letter: its prefix, its body, padding. */
function recordBytes(length: number): number {
  return 4 * PREFIX_WORDS + alignUp(length, 4);
}

/**
 * What is to come behind a record, of the message that it is of.
 * @param rest what is to come before it
 * @returns undefined: there is no such record, or not there
 */
function restBehind(kind: number, meta: number, body: Uint8Array, rest: Rest): Rest | undefined {
  const { length } = body;
  if (kind === KIND_SWITCH) return rest;
  if (kind === KIND_MORE) {
    const { prologue, payload } = rest;
    if (length === 0 || length > (prologue || payload)) return undefined;
    return prologue > 0 ? { prologue: prologue - length, payload } : { prologue, payload: payload - length };
  }
  const headerBytes = meta >>> META_HEADER_SHIFT;
  if (!isOver(rest)) return undefined;
  if (kind === KIND_MESSAGE) return headerBytes <= length && length <= RECV_IMMEDIATE_MAX ? rest : undefined;
  if (kind === KIND_RTS) return isOffer(body, headerBytes) ? rest : undefined;
  if (length < FIRST_PREFIX_SIZE) return undefined;
  const payloadBytes = new DataView(body.buffer, body.byteOffset).getUint32(0, true);
  if (payloadBytes > MESSAGE_BYTES_MAX) return undefined;
  const space = alignUp(headerBytes, 8);
  const total = payloadBytes === 0 ? headerBytes : space + payloadBytes;
  const first = total <= RECV_IMMEDIATE_MAX ? total : space;
  const here = length - FIRST_PREFIX_SIZE;
  return here <= first ? { prologue: first - here, payload: total - first } : undefined;
}

function isOver({ prologue, payload }: Rest): boolean {
  return prologue + payload === 0;
}

/** Whether a body is a request to send, and the header behind it. */
function isOffer(body: Uint8Array, headerBytes: number): boolean {
  if (body.length !== RTS_SIZE + headerBytes) return false;
  const words = new DataView(body.buffer, body.byteOffset);
  const bytes = words.getUint32(RTS_BYTES_OFFSET, true);
  // Nothing is staged for another memory.
  return bytes > 0 && bytes <= MESSAGE_BYTES_MAX && words.getUint32(RTS_PORTION_OFFSET, true) === 0;
}

/** A kernel's functions as properties, whatever they are methods of. */
function callable(kernel: Kernel): Kernel {
  const all: Record<string, unknown> = {};
  for (let holder: object = kernel; holder !== Object.prototype; holder = Object.getPrototypeOf(holder)) {
    const isClass = Object.hasOwn(holder, "constructor");
    for (const name of Object.getOwnPropertyNames(holder)) {
      const value = (kernel as unknown as Record<string, unknown>)[name];
      if (name !== "constructor") all[name] = isClass ? (value as () => void).bind(kernel) : value;
    }
  }
  return all as unknown as Kernel;
}

/** A record as the first of the packets that it is cut into. */
function begun(record: LaneRecord): LaneRecord {
  const { kind, meta, body, counts } = record;
  if (kind !== KIND_MESSAGE) return record;
  const payloadBytes = Math.max(0, body.length - alignUp(meta >>> META_HEADER_SHIFT, 8));
  const bytes = new Uint8Array(FIRST_PREFIX_SIZE + body.length);
  new DataView(bytes.buffer).setUint32(0, payloadBytes, true);
  bytes.set(body, FIRST_PREFIX_SIZE);
  return { kind: KIND_FIRST, meta, body: bytes, counts };
}
