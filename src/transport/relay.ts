// Between tasks that share no memory: each has one of its own, laid out for all tasks, and in it a relay that stands for
// all the others. Contexts, lanes and the engine are those of shared memory.
//
//   memory of task 0                                          memory of task 1
//   context 0.0 ─► lane ─► block of 1.0 ─► relay ══ MessagePort ══► relay ─► lane ─► block of 1.0 ─► context 1.0
//   injection FIFO of 0.0 ──────────────► relay ══ descriptor ═════► relay ─► performs it on a region of task 1
//
// Records go as they are: those that were committed since, in one message for each context they go to. WINDOW bytes of
// them may be on their way to one; then its lanes fill up, as they do where it does not read. One descriptor of each
// injection FIFO is away at a time, so that a FIFO stays in order.
import {
  ADVANCE_EVENTS_MASK,
  CONTEXT_EVENTS_OFFSET,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_COMPLETION,
  DESCRIPTOR_FENCE,
  DESCRIPTOR_GET,
  DESCRIPTOR_KIND_OFFSET,
  DESCRIPTOR_LOCAL_GENERATION_OFFSET,
  DESCRIPTOR_LOCAL_INDEX_OFFSET,
  DESCRIPTOR_LOCAL_OFFSET_OFFSET,
  DESCRIPTOR_PUT,
  DESCRIPTOR_REMOTE_GENERATION_OFFSET,
  DESCRIPTOR_REMOTE_INDEX_OFFSET,
  DESCRIPTOR_REMOTE_OFFSET_OFFSET,
  DESCRIPTOR_RMW,
  DESCRIPTOR_SHIFT,
  DESCRIPTOR_SIZE,
  EVENT_SIZE,
  FIRST_PREFIX_SIZE,
  INJECTION_FAILED_OFFSET,
  INJECTION_FIRST_OFFSET,
  INJECTION_HEAD_OFFSET,
  INJECTION_REFUSED_OFFSET,
  INJECTION_RESULT_OFFSET,
  INJECTION_SLOTS_OFFSET,
  INJECTION_STAGED_OFFSET,
  INJECTION_TAIL_OFFSET,
  KIND_FIRST,
  KIND_MESSAGE,
  KIND_MORE,
  KIND_SWITCH,
  LANE_TARGET_OFFSET,
  META_HEADER_SHIFT,
  RECORD_KIND_MASK,
  RECORD_KIND_SHIFT,
  RECORD_LENGTH_MASK,
  REGION_BASE_OFFSET,
  REGION_BYTES_OFFSET,
  REGION_GENERATION_OFFSET,
  REGION_SIZE,
  RMW_FETCH,
  RMW_WIDE,
  SLICE_BYTES,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_INVALID,
  TRANSFER_LATER,
  TRANSFER_LOCAL_BOUNDS,
  TRANSFER_LOCAL_CLOSED,
  TRANSFER_REMOTE_BOUNDS,
  TRANSFER_REMOTE_CLOSED,
} from "../../assembly/layout.js";
import { alignUp } from "../../assembly/seq.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { contextBlock, isClosed, type MemoryMap } from "../memory/map.js";
import { LANE_NO_MEMORY, LANE_READY, ShmLanes } from "./shm.js";

/** Bytes of records that may be on their way to one context; a batch may go beyond it. */
const WINDOW = 262144;
/** Bytes that a target gives back at once. */
const CREDIT = WINDOW / 4;
/** Longer messages are handed over, not copied: 64 bytes 5.3 and 4.7 µs, 1 KiB 6 both, 16 KiB 5.7 and 27 (Chromium 156). */
const HAND_OVER_BYTES = 1024;
/** Words before each record in a message: target, origin, kind and bytes of the body, meta. */
const PREFIX_WORDS = 4;
const EVENT_WORDS = EVENT_SIZE >>> 2;
/** Words of a descriptor that mean something. */
const DESCRIPTOR_WORDS = 12;

/** Bytes of the region through which others' operations go. */
export const DESK_BYTES = DESCRIPTOR_SIZE + SLICE_BYTES;

/** What one relay says to another. The bytes are the receiver's own. */
type Letter =
  | { readonly records: Uint8Array }
  /** So many bytes of records to this context, by ordinal, have gone into its lanes. */
  | { readonly credit: number; readonly target: number }
  /** A part of a one-sided operation: `descriptor` speaks of the whole, `moved` bytes of it are done. */
  | {
      readonly ask: number;
      readonly descriptor: Int32Array;
      readonly moved: number;
      readonly data: Uint8Array | undefined;
    }
  | { readonly answer: number; readonly result: number; readonly data: Uint8Array | undefined }
  /** Nothing comes behind this from a context, by ordinal: it has closed. */
  | { readonly closed: number }
  /** Nothing comes behind this: the task has left the job. */
  | { readonly bye: true };

interface Outgoing {
  readonly port: MessagePort;
  /** Bytes on their way to each of its contexts. */
  readonly inFlight: number[];
}

/** A record on its way into a lane. */
interface LaneRecord {
  readonly kind: number;
  readonly meta: number;
  readonly body: Uint8Array;
  /** Bytes that it takes of the window. */
  readonly counts: number;
}

/** What has come from one task. */
interface Incoming {
  readonly port: MessagePort;
  /** Records that had no room yet, for each pair of origin and target. */
  readonly waiting: Map<number, LaneRecord[]>;
  /** Bytes that have gone into lanes and are not given back yet, for each of our contexts. */
  readonly credits: number[];
  /** Ordinals of its contexts that have closed, behind what waits. */
  readonly closed: Set<number>;
  hasLeft: boolean;
}

/** A descriptor of an injection FIFO that is away. */
interface Errand {
  readonly descriptor: number;
  readonly task: number;
  moved: number;
  /** Bytes of the part that is asked for. */
  part: number;
  result: number | undefined;
}

/** The region through which others' operations go: a descriptor, then the bytes. */
interface Desk {
  readonly pointer: number;
  readonly index: number;
  readonly generation: number;
}

/** What a relay needs of whoever starts tasks. */
export interface RelayHost {
  /** Brings the other end of a channel to another task's `accept()`. */
  connect(task: number, port: MessagePort): void;
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
  readonly #inner: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  /** The task in whose memory it is. */
  readonly task: number;
  readonly #endpoints: number;
  readonly #host: RelayHost;
  readonly #outgoing = new Map<number, Outgoing>();
  readonly #incoming = new Map<number, Incoming>();
  readonly #ended = new Set<number>();
  /** Lanes that the relay writes in the place of other tasks' contexts, by ordinal. */
  readonly #lanes: ShmLanes[] = [];
  /** Ordinals of contexts of other tasks to which something was sent. */
  readonly #fresh = new Set<number>();
  #isScheduled = false;
  /** By injection FIFO. */
  readonly #errands = new Map<number, Errand>();
  readonly #asked = new Map<number, Errand>();
  #asks = 0;
  #desk: Desk | undefined;
  #wake = (): void => {};
  #closed = false;

  constructor(inner: Kernel, memory: Memory, map: MemoryMap, task: number, host: RelayHost) {
    this.#inner = inner;
    this.#memory = memory;
    this.#map = map;
    this.task = task;
    this.#endpoints = map.tasks * map.contexts;
    this.#host = host;
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
        most === 0 && this.#isAway(descriptor) ? this.#check(descriptor) : inner.perform(job, descriptor, most),
      submit: (job, fifo, hasCallback) => {
        const staged = fifo + INJECTION_STAGED_OFFSET;
        if (!this.#isAway(staged)) return inner.submit(job, fifo, hasCallback);
        const result = this.#check(staged);
        return result === TRANSFER_DONE ? TRANSFER_LATER : result;
      },
      engineRun: (job, fifo, most) => this.#engineRun(job, fifo, most),
    };
  }

  /**
   * This task's client is there.
   * @param desk region of it, of DESK_BYTES, that nobody else uses
   * @param wake wakes whoever waits on this thread
   */
  serve(
    desk: { readonly bytes: Uint8Array; readonly index: number; readonly generation: number },
    wake: () => void,
  ): void {
    this.#desk = { pointer: desk.bytes.byteOffset, index: desk.index, generation: desk.generation };
    this.#wake = wake;
  }

  /** Another task has something to say, by this port. */
  accept(task: number, port: MessagePort): void {
    if (this.#closed || this.#ended.has(task)) {
      port.close();
      return;
    }
    const incoming: Incoming = { port, waiting: new Map(), credits: [], closed: new Set(), hasLeft: false };
    this.#incoming.set(task, incoming);
    port.onmessage = ({ data }: MessageEvent<Letter>) => {
      if (this.#ended.has(task) || this.#closed) return;
      if ("records" in data) this.#file(incoming, data.records);
      else if ("ask" in data) this.#answer(port, data.ask, data.descriptor, data.moved, data.data);
      else if ("closed" in data) incoming.closed.add(data.closed);
      else if ("bye" in data) incoming.hasLeft = true;
      this.#deliver();
      this.#wake();
    };
  }

  /**
   * Another task has ended.
   * @param hasLeft whether it closed its client: then what it sent before is still delivered
   */
  ended(task: number, hasLeft: boolean): void {
    if (this.#ended.has(task) || this.#closed) return;
    // What it says last comes by its own port.
    if (hasLeft && this.#incoming.has(task)) return;
    this.#ended.add(task);
    const incoming = this.#incoming.get(task);
    incoming?.port.close();
    this.#outgoing.get(task)?.port.close();
    this.#incoming.delete(task);
    this.#outgoing.delete(task);
    for (const errand of this.#errands.values()) {
      if (errand.task === task && errand.result === undefined) errand.result = TRANSFER_ENDED;
    }
    for (const [ask, errand] of this.#asked) if (errand.task === task) this.#asked.delete(ask);
    this.#host.bury(task);
    this.#wake();
  }

  /** Ends the wait in which this task is. */
  interrupt(): void {
    this.#host.interrupt();
    this.#wake();
  }

  /** A context of this task has closed: all others are told, behind what it has sent. */
  closeContext(ordinal: number): void {
    this.#flush(Number.POSITIVE_INFINITY);
    // What came for it goes nowhere, and where it had no room to say that it ends, nobody else frees its lane.
    for (let other = 0; other < this.#endpoints; other++) {
      this.#lanes[other]?.reclaim(ordinal);
      const block = contextBlock(this.#map, other);
      const isAway = this.#taskOf(other) !== this.task;
      if (isAway && this.#inner.laneOf(block, ordinal) !== 0) this.#inner.laneSwitch(this.#map.job, block, ordinal, 0);
    }
    for (let task = 0; task < this.#map.tasks; task++) {
      if (task !== this.task && !this.#ended.has(task))
        this.#to(task).port.postMessage({ closed: ordinal } satisfies Letter);
    }
  }

  /** This task leaves the job: what it has sent goes out, and nothing is taken in any more. */
  close(): void {
    this.#flush(Number.POSITIVE_INFINITY);
    this.#closed = true;
    // The others close the channels, once they have read what is in them: Firefox drops what is under way in one that
    // is closed at this end.
    for (const { port } of this.#outgoing.values()) port.postMessage({ bye: true } satisfies Letter);
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

  /** Posts what was committed, as far as the windows go. */
  #flush(window: number): void {
    if (this.#closed) return;
    let isFree = false;
    for (const target of this.#fresh) {
      const task = this.#taskOf(target);
      const block = contextBlock(this.#map, target);
      const isOver = this.#ended.has(task) || isClosed(this.#inner, this.#map, target);
      const outgoing = isOver ? undefined : this.#to(task);
      const context = target % this.#map.contexts;
      while (outgoing !== undefined && (outgoing.inFlight[context] as number) < window) {
        const count = this.#inner.advance(block, 1) & ADVANCE_EVENTS_MASK;
        if (count === 0) {
          this.#fresh.delete(target);
          break;
        }
        isFree = true;
        outgoing.inFlight[context] =
          (outgoing.inFlight[context] as number) + this.#post(outgoing, block, count, target);
      }
      if (outgoing === undefined) this.#fresh.delete(target);
      this.#inner.peek(block); // frees what was taken
    }
    if (isFree) this.#wake();
  }

  /** Posts a batch of events of a block, and takes them out of it. Returns the bytes that are to be given back. */
  #post({ port }: Outgoing, block: number, count: number, target: number): number {
    const { words, bytes } = this.#memory;
    const first = (block + CONTEXT_EVENTS_OFFSET) >>> 2;
    const end = first + count * EVENT_WORDS;
    const switches: number[] = [];
    let size = 0;
    for (let event = first; event < end; event += EVENT_WORDS) {
      size += 4 * PREFIX_WORDS + alignUp((words[event] as number) & RECORD_LENGTH_MASK, 4);
    }
    const records = new Uint8Array(size);
    const prefixes = new Int32Array(records.buffer);
    let at = 0;
    for (let event = first; event < end; event += EVENT_WORDS) {
      const commit = words[event] as number;
      const body = (words[event + 2] as number) >>> 0;
      const origin = words[event + 3] as number;
      const isSwitch = ((commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK) === KIND_SWITCH;
      const fresh = isSwitch ? this.#word(body) : 0;
      if (isSwitch) switches.push(origin, fresh);
      // Over there lanes are replaced as that side needs it; only the end of one is told.
      if (fresh !== 0) continue;
      const length = isSwitch ? 0 : commit & RECORD_LENGTH_MASK;
      prefixes.set([target, origin, commit - (commit & RECORD_LENGTH_MASK) + length, words[event + 1] as number], at);
      records.set(bytes.subarray(body, body + length), 4 * (at + PREFIX_WORDS));
      at += PREFIX_WORDS + ((length + 3) >>> 2);
    }
    this.#inner.release(block);
    for (let i = 0; i < switches.length; i += 2) {
      this.#inner.laneSwitch(this.#map.job, block, switches[i] as number, switches[i + 1] as number);
    }
    if (at === 0) return 0;
    const sent = 4 * at;
    const letter: Letter = { records: records.subarray(0, sent) };
    port.postMessage(letter, sent > HAND_OVER_BYTES ? [records.buffer] : []);
    return sent;
  }

  /** The channel to a task; made when there is something to say. */
  #to(task: number): Outgoing {
    const there = this.#outgoing.get(task);
    if (there !== undefined) return there;
    const { port1: port, port2 } = new MessageChannel();
    const outgoing: Outgoing = { port, inFlight: new Array<number>(this.#map.contexts).fill(0) };
    this.#outgoing.set(task, outgoing);
    port.onmessage = ({ data }: MessageEvent<Letter>) => {
      if (this.#ended.has(task) || this.#closed) return;
      if ("credit" in data) {
        const context = data.target % this.#map.contexts;
        outgoing.inFlight[context] = (outgoing.inFlight[context] as number) - data.credit;
        this.#flush(WINDOW);
      } else if ("answer" in data) this.#answered(data.answer, data.result, data.data);
      this.#wake();
    };
    this.#host.connect(task, port2);
    return outgoing;
  }

  // ── In ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Records that have come: each behind those of its pair. */
  #file(incoming: Incoming, bytes: Uint8Array): void {
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
    for (let at = 0; at < words.length; ) {
      const commit = words[at + 2] as number;
      const length = commit & RECORD_LENGTH_MASK;
      const from = 4 * (at + PREFIX_WORDS);
      const record: LaneRecord = {
        kind: (commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK,
        meta: words[at + 3] as number,
        body: bytes.subarray(from, from + length),
        counts: 4 * PREFIX_WORDS + alignUp(length, 4),
      };
      const pair = (words[at + 1] as number) * this.#endpoints + (words[at] as number);
      const waiting = incoming.waiting.get(pair);
      if (waiting === undefined) incoming.waiting.set(pair, [record]);
      else waiting.push(record);
      at += PREFIX_WORDS + ((length + 3) >>> 2);
    }
  }

  /** Writes what waits into the lanes, as far as there is room; gives back what went in. */
  #deliver(): void {
    if (this.#closed) return;
    for (const [task, incoming] of this.#incoming) {
      for (const [pair, records] of incoming.waiting) {
        const target = pair % this.#endpoints;
        let count = 0;
        let bytes = 0;
        for (; count < records.length; count++) {
          if (!this.#write(Math.floor(pair / this.#endpoints), target, records, count)) break;
          bytes += (records[count] as LaneRecord).counts;
        }
        if (count === records.length) incoming.waiting.delete(pair);
        else if (count > 0) records.splice(0, count);
        if (bytes > 0) this.#giveBack(incoming, target, bytes);
      }
      for (const ordinal of incoming.closed) {
        if ([...incoming.waiting.keys()].some((pair) => Math.floor(pair / this.#endpoints) === ordinal)) continue;
        incoming.closed.delete(ordinal);
        this.#host.retire(ordinal);
      }
      if (incoming.hasLeft && incoming.waiting.size === 0) {
        this.#incoming.delete(task);
        this.ended(task, true);
      }
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
    const isTooSmall = state === LANE_NO_MEMORY && lane !== 0;
    if (isTooSmall) records.splice(place, 1, ...packetsOf(record, lanes.recordBodyMax(lane)));
    else if (state !== LANE_READY) return false;
    const { kind, meta, body } = records[place] as LaneRecord;
    const at = this.#inner.laneReserve(lane, body.length);
    if (at === 0) return false;
    this.#memory.bytes.set(body, at);
    this.#inner.laneCommit(lane, kind, body.length, meta);
    return true;
  }

  #giveBack(incoming: Incoming, target: number, bytes: number): void {
    const context = target % this.#map.contexts;
    const credit = (incoming.credits[context] ?? 0) + bytes;
    incoming.credits[context] = credit < CREDIT ? credit : 0;
    if (credit >= CREDIT) incoming.port.postMessage({ credit, target } satisfies Letter);
  }

  // ── One-sided operations, at the origin ───────────────────────────────────────────────────────────────────────

  #taskOf(ordinal: number): number {
    return Math.floor(ordinal / this.#map.contexts);
  }

  #word(pointer: number): number {
    return (this.#memory.words[pointer >>> 2] as number) >>> 0;
  }

  /** Task of the region to which a descriptor goes. */
  #ownerOf(descriptor: number): number {
    return Math.floor(this.#word(descriptor + DESCRIPTOR_REMOTE_INDEX_OFFSET) / this.#map.regions);
  }

  /** Whether a descriptor goes to another task. */
  #isAway(descriptor: number): boolean {
    const kind = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET);
    return kind !== DESCRIPTOR_COMPLETION && kind !== DESCRIPTOR_FENCE && this.#ownerOf(descriptor) !== this.task;
  }

  /** What can be said here of a descriptor that goes to another task: TRANSFER_…. */
  #check(descriptor: number): number {
    const kind = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET);
    const code = this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET);
    if (kind === DESCRIPTOR_RMW) {
      const size = (code & RMW_WIDE) !== 0 ? 8 : 4;
      if (this.#word(descriptor + DESCRIPTOR_REMOTE_OFFSET_OFFSET) % size !== 0) return TRANSFER_INVALID;
      if ((code & RMW_FETCH) === 0) return TRANSFER_DONE;
      if (this.#word(descriptor + DESCRIPTOR_LOCAL_OFFSET_OFFSET) % size !== 0) return TRANSFER_INVALID;
      return this.#localOf(descriptor, 0, size).result;
    }
    return this.#localOf(descriptor, 0, code).result;
  }

  /** Where bytes of a region of this memory are. */
  #place(index: number, generation: number, offset: number, bytes: number): { result: number; pointer: number } {
    const entry = this.#map.regionsBase + index * REGION_SIZE;
    const isOpen = index < this.#map.tasks * this.#map.regions && (generation & 1) === 1;
    if (!isOpen || this.#word(entry + REGION_GENERATION_OFFSET) !== generation) {
      return { result: TRANSFER_LOCAL_CLOSED, pointer: 0 };
    }
    if (offset + bytes > this.#word(entry + REGION_BYTES_OFFSET)) return { result: TRANSFER_LOCAL_BOUNDS, pointer: 0 };
    return { result: TRANSFER_DONE, pointer: this.#word(entry + REGION_BASE_OFFSET) + offset };
  }

  /** Where the local bytes of a descriptor are, from byte `moved` on. */
  #localOf(descriptor: number, moved: number, bytes: number): { result: number; pointer: number } {
    const index = this.#word(descriptor + DESCRIPTOR_LOCAL_INDEX_OFFSET);
    const generation = this.#word(descriptor + DESCRIPTOR_LOCAL_GENERATION_OFFSET);
    return this.#place(index, generation, this.#word(descriptor + DESCRIPTOR_LOCAL_OFFSET_OFFSET) + moved, bytes);
  }

  /**
   * As `engineRun` of the kernels, for a FIFO of which some descriptors go to other tasks.
   * @returns descriptors that are left, negated if the first of them is away: nothing can be done before its answer
   */
  #engineRun(job: number, fifo: number, most: number): number {
    const { words } = this.#memory;
    const [headAt, tailAt] = [(fifo + INJECTION_HEAD_OFFSET) >>> 2, (fifo + INJECTION_TAIL_OFFSET) >>> 2];
    const tail = words[tailAt] as number;
    for (;;) {
      // The engine of this memory has what stands before the next one that goes away.
      let next = words[headAt] as number;
      while (next !== tail && !this.#isAway(this.#slotOf(fifo, next))) next = (next + 1) | 0;
      words[tailAt] = next;
      const left = this.#inner.engineRun(job, fifo, most);
      words[tailAt] = tail;
      if (left > 0) return left + ((tail - next) >>> 0);
      if (next === tail) return 0;
      const result = this.#carry(fifo, this.#slotOf(fifo, next));
      if (result === undefined) return -((tail - next) >>> 0);
      words[(fifo + INJECTION_RESULT_OFFSET) >>> 2] = result;
      const failed = (fifo + INJECTION_FAILED_OFFSET) >>> 2;
      if (result !== TRANSFER_DONE) {
        const refused = (fifo + INJECTION_REFUSED_OFFSET) >>> 2;
        words[refused] = (words[refused] as number) + 1;
        if (words[failed] === TRANSFER_DONE) words[failed] = result;
      }
      words[headAt] = (next + 1) | 0;
    }
  }

  #slotOf(fifo: number, position: number): number {
    const mask = this.#word(fifo + INJECTION_SLOTS_OFFSET) - 1;
    return this.#word(fifo + INJECTION_FIRST_OFFSET) + ((position & mask) << DESCRIPTOR_SHIFT);
  }

  /** What has come of the descriptor that is first in a FIFO; undefined: it is away. Sends it, if that is not done. */
  #carry(fifo: number, descriptor: number): number | undefined {
    const there = this.#errands.get(fifo);
    if (there !== undefined) {
      if (there.result !== undefined) this.#errands.delete(fifo);
      return there.result;
    }
    const task = this.#ownerOf(descriptor);
    if (this.#ended.has(task)) return TRANSFER_ENDED;
    const errand: Errand = { descriptor, task, moved: 0, part: 0, result: undefined };
    this.#errands.set(fifo, errand);
    this.#ask(errand);
    return this.#carry(fifo, descriptor);
  }

  /** Asks for the next part of an operation, at most a slice. */
  #ask(errand: Errand): void {
    const { descriptor, moved, task } = errand;
    const kind = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET);
    const left = kind === DESCRIPTOR_RMW ? 0 : this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET) - moved;
    errand.part = Math.min(left, SLICE_BYTES);
    let data: Uint8Array | undefined;
    if (kind === DESCRIPTOR_PUT) {
      const { result, pointer } = this.#localOf(descriptor, moved, errand.part);
      if (result !== TRANSFER_DONE) {
        errand.result = result;
        return;
      }
      data = this.#memory.bytes.slice(pointer, pointer + errand.part);
    }
    const at = descriptor >>> 2;
    const ask = ++this.#asks;
    this.#asked.set(ask, errand);
    const letter = { ask, descriptor: this.#memory.words.slice(at, at + DESCRIPTOR_WORDS), moved, data };
    this.#to(task).port.postMessage(letter satisfies Letter, data === undefined ? [] : [data.buffer as ArrayBuffer]);
  }

  #answered(ask: number, result: number, data: Uint8Array | undefined): void {
    const errand = this.#asked.get(ask);
    this.#asked.delete(ask);
    if (errand === undefined || errand.result !== undefined) return;
    const { descriptor } = errand;
    const kind = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET);
    let state = result;
    if (state === TRANSFER_DONE && data !== undefined) {
      const place = this.#localOf(descriptor, errand.moved, data.length);
      state = place.result;
      if (state === TRANSFER_DONE) this.#memory.bytes.set(data, place.pointer);
    }
    errand.moved += errand.part;
    const isOver = kind === DESCRIPTOR_RMW || errand.moved === this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET);
    if (state !== TRANSFER_DONE || isOver) errand.result = state;
    else this.#ask(errand);
  }

  // ── One-sided operations, at the target ───────────────────────────────────────────────────────────────────────

  /** Does a part of another task's operation, at the desk. */
  #answer(port: MessagePort, ask: number, given: Int32Array, moved: number, data: Uint8Array | undefined): void {
    const { words, bytes } = this.#memory;
    const desk = this.#desk as Desk;
    const at = desk.pointer >>> 2;
    words.set(given, at);
    const kind = this.#word(desk.pointer + DESCRIPTOR_KIND_OFFSET);
    const code = this.#word(desk.pointer + DESCRIPTOR_BYTES_OFFSET);
    const index = this.#word(desk.pointer + DESCRIPTOR_REMOTE_INDEX_OFFSET);
    const generation = this.#word(desk.pointer + DESCRIPTOR_REMOTE_GENERATION_OFFSET);
    const offset = this.#word(desk.pointer + DESCRIPTOR_REMOTE_OFFSET_OFFSET);
    const isRmw = kind === DESCRIPTOR_RMW;
    const size = isRmw ? ((code & RMW_WIDE) === 0 ? 4 : 8) : code;
    // The whole of it is refused, where the whole is not right.
    let result = this.#place(index, generation, offset, size).result;
    if (result === TRANSFER_LOCAL_CLOSED) result = TRANSFER_REMOTE_CLOSED;
    if (result === TRANSFER_LOCAL_BOUNDS) result = TRANSFER_REMOTE_BOUNDS;
    const part = isRmw ? size : Math.min(code - moved, SLICE_BYTES);
    const from = desk.pointer + DESCRIPTOR_SIZE;
    if (result === TRANSFER_DONE) {
      if (data !== undefined) bytes.set(data, from);
      if (!isRmw) words[at + (DESCRIPTOR_BYTES_OFFSET >>> 2)] = part;
      words[at + (DESCRIPTOR_LOCAL_INDEX_OFFSET >>> 2)] = desk.index;
      words[at + (DESCRIPTOR_LOCAL_GENERATION_OFFSET >>> 2)] = desk.generation;
      words[at + (DESCRIPTOR_LOCAL_OFFSET_OFFSET >>> 2)] = DESCRIPTOR_SIZE;
      words[at + (DESCRIPTOR_REMOTE_OFFSET_OFFSET >>> 2)] = offset + moved;
      result = this.#inner.perform(this.#map.job, desk.pointer, SLICE_BYTES);
    }
    const gives = kind === DESCRIPTOR_GET || (isRmw && (code & RMW_FETCH) !== 0);
    const back = result === TRANSFER_DONE && gives ? bytes.slice(from, from + part) : undefined;
    const letter = { answer: ask, result, data: back } satisfies Letter;
    port.postMessage(letter, back === undefined ? [] : [back.buffer as ArrayBuffer]);
  }
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

/** A record as packets of at most `most` bytes: for a lane that does not take it, where there is no memory for a larger one. */
function packetsOf({ kind, meta, body, counts }: LaneRecord, most: number): LaneRecord[] {
  let bytes = body;
  if (kind === KIND_MESSAGE) {
    const payloadBytes = Math.max(0, body.length - alignUp(meta >>> META_HEADER_SHIFT, 8));
    bytes = new Uint8Array(FIRST_PREFIX_SIZE + body.length);
    new DataView(bytes.buffer).setUint32(0, payloadBytes, true);
    bytes.set(body, FIRST_PREFIX_SIZE);
  }
  const packets: LaneRecord[] = [];
  for (let at = 0; at < bytes.length; at += most) {
    const isFirst = at === 0 && kind !== KIND_MORE;
    packets.push({
      kind: isFirst ? KIND_FIRST : KIND_MORE,
      meta: isFirst ? meta : 0,
      body: bytes.subarray(at, at + most),
      // The window counts it once: with the last.
      counts: at + most < bytes.length ? 0 : counts,
    });
  }
  return packets;
}
