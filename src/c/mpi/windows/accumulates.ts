// Accumulates: operations that change elements of a window, each of them atomically. Which way an element takes depends on its
// type and place alone: a task of its node exchanges it; an rmw of pamir changes a word of another node; or a message asks the
// task that owns the memory, which does it while it is in a call of MPI.

import * as L from "../../../../assembly/layout.js";
import {
  EAGAIN,
  type Endpoint,
  type MemRegion,
  type Message,
  type Result,
  type RmwOperation,
  type RmwType,
  SHUTDOWN,
  SUCCESS,
} from "../../../index.js";
import type { MpiState } from "../state.js";
import { isDense, pack, unpack } from "../types.js";
import { Accumulator, type Change, COMPARE, isExchanged, rmwOf } from "./accumulator.js";
import { type Elements, eachRun } from "./elements.js";
import { ended, type OpenTransfer } from "./transfers.js";
import type { RankMemory, Window } from "./window.js";
import { MESSAGE, type WindowSet } from "./windows.js";

/** Bytes of operands in a message: more goes in several. */
const CHUNK_BYTES = 8192;
const RMW_NAMES: Readonly<Record<number, "set" | "add" | "or" | "and" | "xor">> = {
  [L.RMW_SET]: "set",
  [L.RMW_ADD]: "add",
  [L.RMW_OR]: "or",
  [L.RMW_AND]: "and",
  [L.RMW_XOR]: "xor",
};

/** The rmws that may be under way, and the bytes of each one's place. */
const SLOTS = 128;
const SLOT_BYTES = 32;

interface Slot {
  readonly region: MemRegion;
  readonly at: number;
}

/** One accumulate. */
export interface Accumulate {
  readonly change: Change;
  readonly target: Elements;
  /** Operands; undefined: there are none. */
  readonly origin: Elements | undefined;
  /** Where the old values go; undefined: nowhere. */
  readonly result: Elements | undefined;
  /** Pointer to what a COMPARE compares. */
  readonly test?: number;
}

/** A run of elements, with pointers to operands and for old values. */
interface Run {
  readonly operation: OpenTransfer;
  readonly change: Change;
  readonly address: number;
  readonly count: number;
  readonly values: number;
  readonly results: number;
  readonly test: number;
}

export class Accumulates {
  readonly #set: WindowSet;
  readonly #state: MpiState;
  readonly #accumulator: Accumulator;
  readonly #copy: (to: number, from: number, bytes: number) => void;
  /** What waits for an answer, by its number. */
  readonly #asked = new Map<number, Run>();
  #nextAsked = 1;
  /** Places of rmws that are free. */
  readonly #slots: Slot[] = [];
  #hasSlots = false;
  /** For what another rank has asked: operands, then old values. */
  #served: MemRegion | undefined;

  constructor(set: WindowSet) {
    const { state } = set;
    this.#set = set;
    this.#state = state;
    this.#accumulator = new Accumulator(state);
    this.#copy = (to, from, bytes) => state.engine.copy(to, from, bytes);
    set.hear(MESSAGE.ACCUMULATE, (window, origin, message) => this.#serve(window, origin, message));
    set.hear(MESSAGE.ANSWER, (_window, _origin, message) => this.#answered(message));
  }

  /** Begins an accumulate. @throws MpiFailure MPIX_ERR_PROC_FAILED */
  begin(window: Window, rank: number, { change, target, origin, result, test = 0 }: Accumulate): OpenTransfer {
    const { engine } = this.#state;
    this.#set.transfers.checkAlive(window, rank);
    const places: MemRegion[] = [];
    /** Where elements lie without gaps. */
    const placeFor = (elements: Elements | undefined): number => {
      if (elements === undefined || elements.bytes === 0) return 0;
      if (isDense(elements.type)) return elements.address;
      const place = engine.scratch(elements.bytes);
      places.push(place);
      return place.bytes.byteOffset;
    };
    const values = placeFor(origin);
    if (origin !== undefined && places.length > 0) pack(this.#copy, origin.type, origin.address, origin.count, values);
    const results = placeFor(result);
    const operation = this.#set.transfers.begin(window, rank, ({ hasFailed }) => {
      if (result !== undefined && results !== result.address && !hasFailed)
        unpack(this.#copy, result.type, results, result.bytes, result.address);
      for (const place of places) engine.freeScratch(place);
    });
    try {
      eachRun(target, (address, bytes, place) => {
        const count = bytes / change.bytes;
        const run = { operation, change, address, count, values: values + place, test };
        this.#run(window, rank, { ...run, results: results === 0 ? 0 : results + place });
      });
    } catch (error) {
      operation.hasFailed = true;
      throw error;
    } finally {
      this.#set.transfers.end(operation);
    }
    return operation;
  }

  #run(window: Window, rank: number, run: Run): void {
    const { owner, isLocal } = window.parts[rank] as RankMemory;
    const { change, address, count, values, results, test } = run;
    const isExchange = isExchanged(change, address);
    if (owner === this.#state.context.endpoint || (isLocal && isExchange)) {
      // A run before this one may have waited.
      this.#set.transfers.checkAlive(window, rank);
      this.#accumulator.apply(change, address, count, values, results, test);
      return;
    }
    const isWord = change.bytes === 4 || change.bytes === 8;
    if (count === 1 && isExchange && isWord && (change.operation === COMPARE || rmwOf(change) >= 0)) {
      this.#rmw(window, rank, run);
      return;
    }
    const most = Math.floor(CHUNK_BYTES / change.bytes);
    for (let first = 0; first < count; first += most) {
      const shift = first * change.bytes;
      const part = { ...run, address: address + shift, count: Math.min(most, count - first), values: values + shift };
      this.#ask(window, rank, { ...part, results: results === 0 ? 0 : results + shift });
    }
  }

  /** Changes one word of another node, by pamir. */
  #rmw(window: Window, rank: number, { operation, change, address, values, results, test }: Run): void {
    const { engine, context } = this.#state;
    const { owner, region, regionBase } = window.parts[rank] as RankMemory;
    const { bytes } = change;
    const slot = this.#takeSlot(window, rank);
    const { region: place, at: offset } = slot;
    const at = place.bytes.byteOffset + offset;
    if (change.operation === L.OPERATION_NOOP) place.bytes.fill(0, offset, offset + bytes);
    else engine.copy(at, values, bytes);
    const isCompare = change.operation === COMPARE;
    if (isCompare) engine.copy(at + 8, test, bytes);
    const name = RMW_NAMES[isCompare ? L.RMW_SET : rmwOf(change)];
    const code = (isCompare ? `fetch-compare-${name}` : `fetch-${name}`) as RmwOperation;
    const type: RmwType = bytes === 8 ? "i64" : "i32";
    operation.left++;
    const parameters = {
      to: owner,
      remote: region,
      remoteOffset: address - regionBase,
      operation: code,
      type,
      value: { region: place, offset },
      result: place,
      resultOffset: offset + 16,
      onDone: (_: unknown, result: Result): void => {
        if (result === SUCCESS && results !== 0) engine.copy(results, at + 16, bytes);
        this.#slots.push(slot);
        this.#set.transfers.end(operation, result);
      },
    };
    const start = (): Result =>
      context.rmw(isCompare ? { ...parameters, test: { region: place, offset: offset + 8 } } : parameters);
    let begun = start();
    if (begun === EAGAIN) {
      engine.waitUntil(() => {
        begun = start();
        return begun !== EAGAIN;
      });
    }
    if (begun !== SHUTDOWN) return;
    this.#slots.push(slot);
    operation.left--;
    throw ended(rank);
  }

  /** A place for the operand, the test and the old value of an rmw. */
  #takeSlot(window: Window, rank: number): Slot {
    const { engine } = this.#state;
    if (!this.#hasSlots) {
      this.#hasSlots = true;
      const region = engine.scratch(SLOTS * SLOT_BYTES);
      for (let at = 0; at < region.length; at += SLOT_BYTES) this.#slots.push({ region, at });
    }
    if (this.#slots.length === 0) engine.waitUntil(() => this.#slots.length > 0 || engine.hasEnded(window, rank));
    const slot = this.#slots.pop();
    if (slot === undefined) throw ended(rank);
    return slot;
  }

  /** Asks the task that owns the memory. */
  #ask(window: Window, rank: number, run: Run): void {
    const { operation, change, address, count, values, results, test } = run;
    const { owner } = window.parts[rank] as RankMemory;
    const { bytes: memory } = this.#state;
    const hasOperands = change.operation !== L.OPERATION_NOOP;
    const bytes = hasOperands ? count * change.bytes : 0;
    let payload = memory.subarray(values, values + bytes);
    if (change.operation === COMPARE) {
      payload = new Uint8Array(2 * change.bytes);
      payload.set(memory.subarray(values, values + change.bytes));
      payload.set(memory.subarray(test, test + change.bytes), change.bytes);
    }
    const number = this.#nextAsked++;
    this.#asked.set(number, run);
    operation.left++;
    const code = change.operation | (change.type << 8) | (change.bytes << 16) | (results === 0 ? 0 : 1 << 24);
    try {
      this.#set.tell(window, rank, MESSAGE.ACCUMULATE, { to: owner, words: [number, address, code, count], payload });
    } catch (error) {
      this.#asked.delete(number);
      operation.left--;
      throw error;
    }
  }

  /** Another rank has asked for a change of this task's memory. */
  #serve(window: Window, origin: number, message: Message): void {
    const { engine, client, context } = this.#state;
    const [number, address, code, count] = [12, 16, 20, 24].map((at) => message.headerWord(at)) as [
      number,
      number,
      number,
      number,
    ];
    const change = { operation: code & 255, type: (code >>> 8) & 255, bytes: (code >>> 16) & 255 };
    const bytes = count * change.bytes;
    const isOwn = window.parts.some(
      ({ owner, base, size }) => owner === context.endpoint && address >= base && address + bytes <= base + size,
    );
    if (!isOwn || bytes > CHUNK_BYTES || message.payloadBytes > 2 * CHUNK_BYTES) return;
    const wanted = code >>> 24 === 1 ? bytes : 0;
    // The kernels read the job's memory alone: a message may lie elsewhere.
    this.#served ??= engine.scratch(3 * CHUNK_BYTES);
    const values = this.#served.bytes.byteOffset;
    client.bytes.set(message.payload, values);
    const results = wanted === 0 ? 0 : values + 2 * CHUNK_BYTES;
    this.#accumulator.apply(change, address, count, values, results, values + change.bytes);
    const answer = client.bytes.slice(results, results + wanted);
    this.#set.answer(window, window.endpoints[origin] as Endpoint, MESSAGE.ANSWER, [number], answer);
  }

  #answered(message: Message): void {
    const number = message.headerWord(12);
    const run = this.#asked.get(number);
    if (run === undefined) return;
    this.#asked.delete(number);
    if (run.results !== 0) this.#state.bytes.set(message.payload, run.results);
    this.#set.transfers.end(run.operation);
  }
}
