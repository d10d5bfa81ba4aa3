// One-sided operations between nodes. At the origin, the engine stops at a descriptor for another node. The agent asks that
// node for it, in slices of its bytes. At the target, the agent does each part.
//
// The agent asks ahead in a FIFO: for AHEAD_BYTES of puts, or AHEAD_BYTES_GET of gets, that go to one task. So the rate of a
// stream does not depend on the round trip. The target does the operations in the order asked, and its answers come in that
// order. Later operations of another kind, or for another task, wait: a put may send bytes that a get before it has brought.
//
// Many small transfers on one region take one frame. A frame with room for more operations waits while another such frame is on
// its way.
import * as L from "../../../assembly/layout.js";
import { type Endpoint, taskOf } from "../../core/endpoint.js";
import { type SharedAtomics, sharedAtomics } from "../../kernel/atomics.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, injectionFifo, type MemoryMap, ordinalOf, taskSlot } from "../../memory/map.js";
import type { SlotTable } from "../../node/address.js";
import { copyInto } from "../../support/copy.js";
import { FrameScratch } from "./frame-buffers.js";
import type { Frame, SendFrame } from "./frames.js";
import type { NetParts } from "./net-parts.js";
import { CREDIT_BYTES } from "./records.js";
import { remoteResult, resolveRegion } from "./regions.js";

/** Bits of an RMW's code. */
const RMW_KNOWN = L.RMW_OPERATION_MASK | L.RMW_FETCH | L.RMW_COMPARE | L.RMW_WIDE | L.RMW_NOTIFY | L.RMW_BEHIND;

type Ask = Extract<Frame, { readonly ask: number }>;

/** Most operations of a frame. Of several, all bytes together are a slice at the most. */
export const RUNS_MAX = 64;

/**
 * Bytes of puts of a FIFO that are on their way before the first is answered: a lost packet holds up later packets for two
 * round trips. With 1 MiB, 1 % of losses on loopback left 0.67 of the rate, with 4 MiB 0.93.
 */
export const AHEAD_BYTES = CREDIT_BYTES;
/** Bytes of gets of a FIFO that are on their way. The target keeps copies of their answers, for each FIFO that asks it. */
export const AHEAD_BYTES_GET = CREDIT_BYTES / 4;

/** An operation that was asked for, or parts of it. */
interface Operation {
  /** Slot of the operation's descriptor, modulo 2^32. */
  readonly slot: number;
  /** TRANSFER_…: DONE until a part fails. */
  result: number;
}

/** The part of one operation that a frame asks for. The bytes lie in the local region. */
interface Part {
  readonly operation: Operation;
  readonly index: number;
  readonly generation: number;
  readonly offset: number;
  readonly remoteOffset: number;
  readonly bytes: number;
  readonly isLast: boolean;
}

/** A frame that is away. */
interface Asked {
  readonly number: number;
  readonly parts: readonly Part[];
  readonly bytes: number;
  /** Whether the frame could have taken more operations. */
  readonly isShort: boolean;
}

/** An injection FIFO whose descriptor at the head goes to another node. */
interface Away {
  readonly fifo: number;
  /** Ordinal of the context that owns the FIFO. */
  readonly origin: number;
  readonly from: Endpoint;
  readonly to: Endpoint;
  /** Kind of the descriptors that are on their way; of an rmw, its code. */
  readonly kind: number;
  readonly code: number;
  /** In the order in which their answers come. */
  readonly asked: Asked[];
  bytes: number;
  /**
   * The next slot, modulo 2^32. If a part of its operation was asked for: the bytes of that part, and the operation's result.
   */
  next: number;
  moved: number;
  begun: Operation | undefined;
}

/** Bytes of the part of an operation that is next, by its kind and its bytes or code. */
function partOf(kind: number, code: number, moved: number): number {
  if (kind === L.DESCRIPTOR_RMW) return (code & L.RMW_WIDE) === 0 ? 4 : 8;
  return Math.min(code - moved, L.SLICE_BYTES);
}

/** The common fields of descriptors that share a frame. */
const SHARED = [L.DESCRIPTOR_KIND_OFFSET, L.DESCRIPTOR_REMOTE_INDEX_OFFSET, L.DESCRIPTOR_REMOTE_GENERATION_OFFSET];

const NO_BYTES: Uint8Array = new Uint8Array(0);

export class RemoteRma {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: SlotTable;
  readonly #send: SendFrame;
  readonly #scratch = new FrameScratch();
  readonly #atomics: SharedAtomics;
  /** By the pointer of the FIFO. */
  readonly #aways = new Map<number, Away>();
  /** By the number of each frame that is away. */
  readonly #awayOf = new Map<number, Away>();
  #asks = 0;

  constructor({ kernel, memory, map, addresses }: NetParts, send: SendFrame) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#atomics = sharedAtomics(memory);
    this.#map = map;
    this.#addresses = addresses;
    this.#send = send;
  }

  /** A task of another node has ended: ends the operations that are on their way to that task. */
  ended(number: number): void {
    for (const away of this.#aways.values()) {
      if (taskOf(away.to) !== number) continue;
      this.#aways.delete(away.fifo);
      const parts = away.asked.flatMap((asked) => asked.parts);
      for (const asked of away.asked) this.#awayOf.delete(asked.number);
      for (const { operation } of parts) operation.result = L.TRANSFER_ENDED;
      this.#end(away, new Set(parts.map(({ operation }) => operation)));
    }
  }

  /** Whether a task's answer is awaited. */
  isBusy(number: number): boolean {
    for (const { to } of this.#aways.values()) if (taskOf(to) === number) return true;
    return false;
  }

  // ── At the origin ─────────────────────────────────────────────────────────────────────────────────────────────

  #word(pointer: number): number {
    return (this.#memory.words[pointer >>> 2] as number) >>> 0;
  }

  /**
   * Takes over the descriptors at which the engine has stopped, and asks for later descriptors that need not wait. Returns
   * whether there were any.
   */
  turn(): boolean {
    const { locals, contexts, fifos } = this.#map;
    const { words } = this.#memory;
    let isAny = false;
    for (const away of this.#aways.values()) if (this.#askAhead(away)) isAny = true;
    for (let origin = 0; origin < locals * contexts; origin++) {
      for (let number = 0; number < fifos; number++) {
        const fifo = injectionFifo(this.#map, origin, number);
        // plain: the agent's thread is the engine. The engine may have reached a descriptor that was asked for ahead.
        if (words[(fifo + L.INJECTION_AWAY_OFFSET) >>> 2] !== L.AWAY_FOUND || this.#aways.has(fifo)) continue;
        words[(fifo + L.INJECTION_AWAY_OFFSET) >>> 2] = L.AWAY_TAKEN;
        isAny = true;
        this.#take(origin, fifo);
      }
    }
    return isAny;
  }

  /** Carries the descriptor at the head of a FIFO to another node. */
  #take(origin: number, fifo: number): void {
    const next = this.#word(fifo + L.INJECTION_HEAD_OFFSET);
    const descriptor = this.#descriptorAt(fifo, next);
    const kind = this.#word(descriptor + L.DESCRIPTOR_KIND_OFFSET);
    const code = this.#word(descriptor + L.DESCRIPTOR_BYTES_OFFSET);
    const [from, to] = [this.#addresses.endpointAt(origin), this.#targetOf(descriptor)];
    const away: Away = { fifo, origin, from, to, kind, code, asked: [], bytes: 0, next, moved: 0, begun: undefined };
    // SYNC task-state (look): the agent itself marks tasks of other nodes as ended.
    const state = this.#kernel.loadWord(taskSlot(this.#map, this.#ownerOf(descriptor)) + L.TASK_STATE_OFFSET);
    if (to === L.NONE || state >= L.TASK_CLOSED) {
      this.#end(away, [{ slot: next, result: L.TRANSFER_ENDED }]);
      return;
    }
    this.#aways.set(fifo, away);
    this.#askAhead(away);
  }

  #descriptorAt(fifo: number, slot: number): number {
    const mask = this.#word(fifo + L.INJECTION_SLOTS_OFFSET) - 1;
    return this.#word(fifo + L.INJECTION_FIRST_OFFSET) + ((slot & mask) << L.DESCRIPTOR_SHIFT);
  }

  /** Slot of the task whose region a descriptor names. */
  #ownerOf(descriptor: number): number {
    return Math.floor(this.#word(descriptor + L.DESCRIPTOR_REMOTE_INDEX_OFFSET) / this.#map.regions);
  }

  #targetOf(descriptor: number): Endpoint {
    return this.#addresses.endpointAt(ordinalOf(this.#map, this.#ownerOf(descriptor), 0));
  }

  /** Operations are done, or can't be. The engine goes on with the FIFO. */
  #end({ fifo, origin }: Away, operations: Iterable<Operation>): void {
    for (const { slot, result } of operations) {
      // The engine goes on to the next descriptor, or ends that descriptor itself, because its local region was closed
      // meanwhile.
      this.#kernel.engineRun(this.#map.job, fifo, L.SLICE_BYTES);
      if (this.#word(fifo + L.INJECTION_HEAD_OFFSET) === slot) this.#kernel.engineCarried(fifo, result);
    }
    this.#kernel.engineCall(this.#map.job, origin);
    // The owner may wait for room in the FIFO.
    this.#kernel.ring(this.#word(contextBlock(this.#map, origin) + L.CONTEXT_TASK_OFFSET));
  }

  /** The local bytes of a part; or TRANSFER_…, why there are none. */
  #localOf({ index, generation, offset, bytes }: Part): Uint8Array | number {
    const { result, pointer } = resolveRegion(this.#kernel, this.#map, index, generation, offset, bytes);
    return result === L.TRANSFER_DONE ? this.#memory.bytes.subarray(pointer, pointer + bytes) : result;
  }

  /** Asks for operations that may join the operations on their way. Returns whether there was any. */
  #askAhead(away: Away): boolean {
    let isAny = false;
    const most = away.kind === L.DESCRIPTOR_GET ? AHEAD_BYTES_GET : AHEAD_BYTES;
    while (away.bytes < most && this.#ask(away)) isAny = true;
    if (away.asked.length === 0) this.#aways.delete(away.fifo);
    return isAny;
  }

  /** Whether a descriptor may be on its way together with the descriptors that are. */
  #goesAlong({ kind, to, asked }: Away, descriptor: number): boolean {
    if (this.#word(descriptor) !== kind || this.#targetOf(descriptor) !== to) return false;
    return kind !== L.DESCRIPTOR_RMW || asked.length === 0;
  }

  /** Asks for the next part of an operation, or for the whole operation together with later ones. False: not now. */
  #ask(away: Away): boolean {
    const { fifo, kind, from, to, asked } = away;
    // SYNC inject (look): pairs with inject().
    const tail = this.#kernel.loadWord(fifo + L.INJECTION_TAIL_OFFSET) >>> 0;
    this.#skip(away, tail);
    const { next, moved } = away;
    const first = this.#descriptorAt(fifo, next);
    if (next === tail || !this.#goesAlong(away, first)) return false;
    const begun = away.begun ?? { slot: next, result: L.TRANSFER_DONE };
    if (begun.result !== L.TRANSFER_DONE) {
      // A part of the operation has failed: the operation ends once its other parts are answered.
      if (asked.length === 0) this.#end(away, [begun]);
      return false;
    }
    let parts = [this.#partAt(away, begun, moved)];
    let slot = (next + 1) >>> 0;
    let sum = (parts[0] as Part).bytes;
    const isWhole = moved === 0 && (parts[0] as Part).isLast && kind !== L.DESCRIPTOR_RMW;
    for (; isWhole && slot !== tail && parts.length < RUNS_MAX; slot = (slot + 1) >>> 0) {
      const descriptor = this.#descriptorAt(fifo, slot);
      if (this.#word(descriptor) > L.DESCRIPTOR_RMW) continue; // a completion, or a fence
      const part = this.#partAt(away, { slot, result: L.TRANSFER_DONE }, 0);
      sum += part.bytes;
      const isOther = SHARED.some((offset) => this.#word(descriptor + offset) !== this.#word(first + offset));
      if (isOther || !part.isLast || sum > L.SLICE_BYTES) break;
      parts.push(part);
    }
    const isShort = isWhole && slot === tail && parts.length < RUNS_MAX && sum < L.SLICE_BYTES;
    if (isShort && asked.some((other) => other.isShort)) return false;
    const runs: Uint8Array[] = [];
    for (const part of kind === L.DESCRIPTOR_PUT ? parts : []) {
      const run = this.#localOf(part);
      if (typeof run === "number") {
        // If the first put's local region is bad, that put fails in its turn. If a later put's region is bad, only the puts
        // before it are sent.
        if (runs.length === 0 && asked.length === 0) this.#end(away, [{ slot: next, result: run }]);
        if (runs.length === 0) return false;
        parts = parts.slice(0, runs.length);
        break;
      }
      runs.push(run);
    }
    const { operation, isLast } = parts[parts.length - 1] as Part;
    const bytes = parts.reduce((all, part) => all + part.bytes, 0);
    const number = ++this.#asks >>> 0;
    asked.push({ number, parts, bytes, isShort });
    this.#awayOf.set(number, away);
    away.bytes += bytes;
    away.next = isLast ? (operation.slot + 1) >>> 0 : next;
    away.moved = isLast ? 0 : moved + bytes;
    away.begun = isLast ? undefined : operation;
    const descriptor = this.#memory.words.slice(first >>> 2, (first >>> 2) + L.DESCRIPTOR_WORDS);
    const index = L.DESCRIPTOR_REMOTE_INDEX_OFFSET >>> 2;
    descriptor[index] = (descriptor[index] as number) % this.#map.regions;
    const more = parts.slice(1).flatMap((part) => [part.bytes, part.remoteOffset]);
    const data = kind === L.DESCRIPTOR_PUT ? this.#scratch.join(runs) : undefined;
    this.#send(from, to, { ask: number, descriptor, moved, more, data });
    return true;
  }

  /** Goes on to the next transfer, or to the tail. The engine may have ended some that were not asked for. */
  #skip(away: Away, tail: number): void {
    const head = this.#word(away.fifo + L.INJECTION_HEAD_OFFSET);
    if (((head - away.next) | 0) > 0) {
      away.next = head;
      away.moved = 0;
      away.begun = undefined;
    }
    while (away.next !== tail && this.#word(this.#descriptorAt(away.fifo, away.next)) > L.DESCRIPTOR_RMW) {
      away.next = (away.next + 1) >>> 0; // a completion, or a fence
    }
  }

  #partAt({ fifo, kind }: Away, operation: Operation, moved: number): Part {
    const descriptor = this.#descriptorAt(fifo, operation.slot);
    const code = this.#word(descriptor + L.DESCRIPTOR_BYTES_OFFSET);
    const bytes = partOf(kind, code, moved);
    return {
      operation,
      index: this.#word(descriptor + L.DESCRIPTOR_LOCAL_INDEX_OFFSET),
      generation: this.#word(descriptor + L.DESCRIPTOR_LOCAL_GENERATION_OFFSET),
      offset: this.#word(descriptor + L.DESCRIPTOR_LOCAL_OFFSET_OFFSET) + moved,
      remoteOffset: this.#word(descriptor + L.DESCRIPTOR_REMOTE_OFFSET_OFFSET),
      bytes,
      isLast: kind === L.DESCRIPTOR_RMW || moved + bytes === code,
    };
  }

  /** A task has answered. False: this is not the answer that is next, or its data has the wrong length. */
  answered(
    number: number,
    ask: number,
    results: readonly number[] | Int32Array,
    data: Uint8Array | undefined,
  ): boolean {
    const away = this.#awayOf.get(ask);
    const asked = away?.asked[0];
    if (away === undefined || asked?.number !== ask || taskOf(away.to) !== number) return false;
    this.#awayOf.delete(ask);
    away.asked.shift();
    away.bytes -= asked.bytes;
    const isRight = this.#note(away, asked.parts, results, data);
    this.#end(
      away,
      asked.parts.filter(({ isLast }) => isLast).map(({ operation }) => operation),
    );
    // Whether an rmw is done may depend on the operation before it: the engine looks at each.
    if (away.kind === L.DESCRIPTOR_RMW) this.#aways.delete(away.fifo);
    else this.#askAhead(away);
    return isRight;
  }

  /** Notes the results of parts, and writes their data. False: the answer is malformed, and all parts have failed. */
  #note(
    { kind, code }: Away,
    parts: readonly Part[],
    results: readonly number[] | Int32Array,
    data = NO_BYTES,
  ): boolean {
    const resultOf = (i: number): number => results[results.length === 1 ? 0 : i] as number;
    const brings = kind === L.DESCRIPTOR_GET || (kind === L.DESCRIPTOR_RMW && (code & L.RMW_FETCH) !== 0);
    const brought = brings ? parts.filter((_, i) => resultOf(i) === L.TRANSFER_DONE) : [];
    const isRight =
      (results.length === 1 || results.length === parts.length) &&
      brought.reduce((sum, { bytes }) => sum + bytes, 0) === data.length;
    let at = 0;
    for (const [i, part] of parts.entries()) {
      let result = isRight ? resultOf(i) : L.TRANSFER_INVALID;
      if (brings && result === L.TRANSFER_DONE) {
        const run = this.#localOf(part);
        if (typeof run === "number") result = run;
        else copyInto(run, 0, data.subarray(at, at + part.bytes));
        at += part.bytes;
      }
      if (part.operation.result === L.TRANSFER_DONE) part.operation.result = result;
    }
    return isRight;
  }

  // ── At the target ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Does the operations that a frame of another node's context asks for. False: the frame is malformed. */
  answer(from: Endpoint, to: Endpoint, { ask, descriptor, moved, more, data = NO_BYTES }: Ask): boolean {
    const map = this.#map;
    if (descriptor.length !== L.DESCRIPTOR_WORDS) return false;
    const word = (offset: number): number => (descriptor[offset >>> 2] as number) >>> 0;
    const [kind, code] = [word(L.DESCRIPTOR_KIND_OFFSET), word(L.DESCRIPTOR_BYTES_OFFSET)];
    const isRmw = kind === L.DESCRIPTOR_RMW;
    if (moved > (isRmw ? 0 : code) || word(L.DESCRIPTOR_REMOTE_INDEX_OFFSET) >= map.regions) return false;
    const part = partOf(kind, code, moved);
    // The bytes and the offset of each operation. Of several, the first is whole, too.
    const asked = Uint32Array.of(part, word(L.DESCRIPTOR_REMOTE_OFFSET_OFFSET), ...more);
    const sum = asked.reduce((all, bytes, i) => (i % 2 === 0 ? all + bytes : all), 0);
    if (more.length > 0 && (part !== code || sum > L.SLICE_BYTES)) return false;
    if (data.length !== (kind === L.DESCRIPTOR_PUT ? sum : 0)) return false;
    const slot = this.#addresses.slotOf(taskOf(to));
    const index = slot * map.regions + word(L.DESCRIPTOR_REMOTE_INDEX_OFFSET);
    const generation = word(L.DESCRIPTOR_REMOTE_GENERATION_OFFSET);
    // Regions that pamir itself uses, for instance for pointers of rget FIFOs, do not exist for other nodes.
    const isOwn = this.#word(map.regionsBase + index * L.REGION_SIZE + L.REGION_OWN_OFFSET) !== 0;
    const results: number[] = [];
    const back: Uint8Array[] = [];
    let at = 0;
    for (let i = 0; i < asked.length; i += 2) {
      const [bytes = 0, offset = 0] = asked.subarray(i);
      // Each part is refused if the whole operation does not fit the region.
      const whole = i > 0 || isRmw ? bytes : code;
      const place = resolveRegion(this.#kernel, map, index, generation, offset, whole);
      let result = isOwn ? L.TRANSFER_REMOTE_BOUNDS : remoteResult(place.result);
      const pointer = place.pointer + moved;
      const run = (): Uint8Array => this.#memory.bytes.subarray(pointer, pointer + bytes);
      if (result === L.TRANSFER_DONE && isRmw) {
        const old = this.#change(pointer, descriptor);
        if (old === undefined) result = L.TRANSFER_INVALID;
        else if ((code & L.RMW_FETCH) !== 0) back.push(old.subarray(0, bytes));
        if (old !== undefined && (code & L.RMW_NOTIFY) !== 0) this.#kernel.ring(taskSlot(map, slot)); // SYNC park (word)
      } else if (result === L.TRANSFER_DONE) {
        if (kind === L.DESCRIPTOR_PUT) copyInto(run(), 0, data.subarray(at, at + bytes));
        else back.push(run());
      }
      at += bytes;
      results.push(result);
    }
    const isOne = results.every((result) => result === results[0]);
    this.#send(to, from, {
      answer: ask,
      results: isOne ? results.slice(0, 1) : results,
      data: back.length === 0 ? undefined : this.#scratch.join(back),
    });
    return true;
  }

  /**
   * Changes a word of a region, like change() of the kernels. Returns the old value's bytes; undefined: the operation is no
   * valid RMW.
   */
  #change(pointer: number, descriptor: Int32Array): Uint8Array | undefined {
    const word = (offset: number): number => descriptor[offset >>> 2] as number;
    const wide = (offset: number): bigint => (BigInt(word(offset + 4) >>> 0) << 32n) | BigInt(word(offset) >>> 0);
    const code = word(L.DESCRIPTOR_BYTES_OFFSET);
    const what = code & L.RMW_OPERATION_MASK;
    const isWide = (code & L.RMW_WIDE) !== 0;
    if (what < L.RMW_SET || what > L.RMW_XOR || (code & ~RMW_KNOWN) !== 0) return undefined;
    if (pointer % (isWide ? 8 : 4) !== 0) return undefined;
    const compares = (code & L.RMW_COMPARE) !== 0;
    const [value, test] = [L.DESCRIPTOR_VALUE_OFFSET, L.DESCRIPTOR_TEST_OFFSET];
    const old = isWide
      ? this.#atomics.changeWide(pointer, what, wide(value), wide(test), compares)
      : BigInt(this.#atomics.changeWord(pointer, what, word(value), word(test), compares));
    return new Uint8Array(BigInt64Array.of(BigInt.asIntN(64, old)).buffer);
  }
}
