// One-sided operations between nodes. At the origin, the engine stops at a descriptor for another node. The agent sends it
// there, one slice of its bytes at a time. At the target, the agent does each part.
//
// One frame of each FIFO is away at once, so that a FIFO stays in order. With a put, it asks for the puts behind that in the
// FIFO, as far as they are on the same region; with a get, for gets. So many small transfers take a frame and a round trip.
// They are done together. If one of them can't be done, none is, and the first is asked for alone: each has its own result.
import {
  AWAY_FOUND,
  AWAY_TAKEN,
  CONTEXT_TASK_OFFSET,
  DESCRIPTOR_BYTES_OFFSET,
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
  DESCRIPTOR_TEST_OFFSET,
  DESCRIPTOR_VALUE_OFFSET,
  DESCRIPTOR_WORDS,
  INJECTION_AWAY_OFFSET,
  INJECTION_FIRST_OFFSET,
  INJECTION_HEAD_OFFSET,
  INJECTION_SLOTS_OFFSET,
  INJECTION_TAIL_OFFSET,
  NONE,
  RMW_BEHIND,
  RMW_COMPARE,
  RMW_FETCH,
  RMW_NOTIFY,
  RMW_OPERATION_MASK,
  RMW_SET,
  RMW_WIDE,
  RMW_XOR,
  SLICE_BYTES,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_INVALID,
} from "../../../assembly/layout.js";
import { type Endpoint, taskOf } from "../../core/endpoint.js";
import { type SharedAtomics, sharedAtomics } from "../../kernel/atomics.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, injectionFifo, type MemoryMap, ordinalOf, taskSlot } from "../../memory/map.js";
import type { Addresses } from "../../node/address.js";
import { copyInto } from "../../support/copy.js";
import { lengthOf } from "./frame-buffers.js";
import type { CopyForFrame, Frame, SendFrame } from "./frames.js";
import { remoteResult, resolveRegion } from "./regions.js";

/** Bits of an RMW's code. */
const RMW_KNOWN = RMW_OPERATION_MASK | RMW_FETCH | RMW_COMPARE | RMW_WIDE | RMW_NOTIFY | RMW_BEHIND;

type Ask = Extract<Frame, { readonly ask: number }>;

/** Most operations of a frame. Of several, all bytes together are a slice at the most. */
export const RUNS_MAX = 64;

/** What descriptors have in common that share a frame. */
const SHARED = [DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_REMOTE_INDEX_OFFSET, DESCRIPTOR_REMOTE_GENERATION_OFFSET];

/** Descriptors of an injection FIFO that are away. */
interface AwayOperation {
  readonly fifo: number;
  /** Ordinal of the context whose FIFO it is. */
  readonly origin: number;
  /** The descriptor at head, its kind, and its bytes or code. */
  readonly descriptor: number;
  readonly kind: number;
  readonly code: number;
  readonly from: Endpoint;
  readonly to: Endpoint;
  /** Their slots, modulo 2^32, from head on. Several are asked for as a whole. */
  slots: number[];
  moved: number;
}

/** Bytes of the part of an operation that is next, by its kind and its bytes or code. */
function partOf(kind: number, code: number, moved: number): number {
  if (kind === DESCRIPTOR_RMW) return (code & RMW_WIDE) === 0 ? 4 : 8;
  return Math.min(code - moved, SLICE_BYTES);
}

/** Copies the bytes of a frame into runs of as many bytes. */
function spread(data: Uint8Array | undefined, runs: readonly Uint8Array[]): void {
  let at = 0;
  for (const run of runs) {
    if (data !== undefined) copyInto(run, 0, data.subarray(at, at + run.length));
    at += run.length;
  }
}

export class RemoteRma {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: Addresses;
  readonly #send: SendFrame;
  readonly #copyOf: CopyForFrame;
  readonly #atomics: SharedAtomics;
  readonly #asked = new Map<number, AwayOperation>();
  #asks = 0;

  constructor(
    kernel: Kernel,
    memory: Memory,
    map: MemoryMap,
    addresses: Addresses,
    send: SendFrame,
    copyOf: CopyForFrame,
  ) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#atomics = sharedAtomics(memory);
    this.#map = map;
    this.#addresses = addresses;
    this.#send = send;
    this.#copyOf = copyOf;
  }

  /** A task of another node has ended: ends the operations that are away to it. */
  ended(number: number): void {
    for (const [ask, operation] of this.#asked) {
      if (taskOf(operation.to) !== number) continue;
      this.#asked.delete(ask);
      this.#end(operation, TRANSFER_ENDED);
    }
  }

  /** Whether a task's answer is awaited. */
  isBusy(number: number): boolean {
    for (const operation of this.#asked.values()) if (taskOf(operation.to) === number) return true;
    return false;
  }

  // ── At the origin ─────────────────────────────────────────────────────────────────────────────────────────────

  #word(pointer: number): number {
    return (this.#memory.words[pointer >>> 2] as number) >>> 0;
  }

  /** Takes over the descriptors at which the engine has stopped. Returns whether there were any. */
  turn(): boolean {
    const { locals, contexts, fifos } = this.#map;
    const { words } = this.#memory;
    let isAny = false;
    for (let origin = 0; origin < locals * contexts; origin++) {
      for (let number = 0; number < fifos; number++) {
        const fifo = injectionFifo(this.#map, origin, number);
        // plain: the agent's thread is the engine.
        if (words[(fifo + INJECTION_AWAY_OFFSET) >>> 2] !== AWAY_FOUND) continue;
        words[(fifo + INJECTION_AWAY_OFFSET) >>> 2] = AWAY_TAKEN;
        isAny = true;
        this.#take(origin, fifo);
      }
    }
    return isAny;
  }

  /** Carries the descriptor at the head of a FIFO to another node. */
  #take(origin: number, fifo: number): void {
    const head = this.#word(fifo + INJECTION_HEAD_OFFSET);
    const descriptor = this.#descriptorAt(fifo, head);
    const index = this.#word(descriptor + DESCRIPTOR_REMOTE_INDEX_OFFSET);
    const to = this.#addresses.endpointAt(ordinalOf(this.#map, Math.floor(index / this.#map.regions), 0));
    const from = this.#addresses.endpointAt(origin);
    const kind = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET);
    const code = this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET);
    const operation = { fifo, origin, descriptor, kind, code, from, to, slots: [head], moved: 0 };
    if (to === NONE) this.#end(operation, TRANSFER_ENDED);
    else this.#ask(operation, RUNS_MAX);
  }

  #descriptorAt(fifo: number, slot: number): number {
    const mask = this.#word(fifo + INJECTION_SLOTS_OFFSET) - 1;
    return this.#word(fifo + INJECTION_FIRST_OFFSET) + ((slot & mask) << DESCRIPTOR_SHIFT);
  }

  /** What was asked for is done, or can't be. The engine goes on with the FIFO. */
  #end(operation: AwayOperation, result: number): void {
    const { fifo, origin, slots } = operation;
    if (slots.length > 1 && result !== TRANSFER_DONE && result !== TRANSFER_ENDED) {
      this.#ask(operation, 1);
      return;
    }
    for (const slot of slots) {
      // It goes on to the next one, or ends that itself, because its local region was closed meanwhile.
      this.#kernel.engineRun(this.#map.job, fifo, SLICE_BYTES);
      if (this.#word(fifo + INJECTION_HEAD_OFFSET) === slot) this.#kernel.engineCarried(fifo, result);
    }
    this.#kernel.engineCall(this.#map.job, origin);
    // The owner may wait for room in the FIFO.
    this.#kernel.ring(this.#word(contextBlock(this.#map, origin) + CONTEXT_TASK_OFFSET));
  }

  /** The local bytes of what is asked for; or TRANSFER_…, why there are none. */
  #localOf({ fifo, kind, slots, moved }: AwayOperation): Uint8Array[] | number {
    const runs: Uint8Array[] = [];
    for (const slot of slots) {
      const descriptor = this.#descriptorAt(fifo, slot);
      const index = this.#word(descriptor + DESCRIPTOR_LOCAL_INDEX_OFFSET);
      const generation = this.#word(descriptor + DESCRIPTOR_LOCAL_GENERATION_OFFSET);
      const offset = this.#word(descriptor + DESCRIPTOR_LOCAL_OFFSET_OFFSET) + moved;
      const bytes = partOf(kind, this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET), moved);
      const { result, pointer } = resolveRegion(this.#kernel, this.#map, index, generation, offset, bytes);
      if (result !== TRANSFER_DONE) return result;
      runs.push(this.#memory.bytes.subarray(pointer, pointer + bytes));
    }
    return runs;
  }

  /**
   * Asks for the next part of an operation, at most a slice, or for the whole of it and of others behind it.
   * @param most so many operations
   */
  #ask(operation: AwayOperation, most: number): void {
    const { fifo, descriptor: first, kind, from, to, slots, moved } = operation;
    const more: number[] = [];
    // SYNC inject (look): pairs with inject().
    const tail = this.#kernel.loadWord(fifo + INJECTION_TAIL_OFFSET) >>> 0;
    let sum = operation.code;
    let [slot = 0] = slots;
    slots.length = 1;
    while (kind !== DESCRIPTOR_RMW && slots.length < most) {
      slot = (slot + 1) >>> 0;
      const next = this.#descriptorAt(fifo, slot);
      if (slot === tail) break;
      if (this.#word(next) > DESCRIPTOR_RMW) continue; // a completion, or a fence
      const bytes = this.#word(next + DESCRIPTOR_BYTES_OFFSET);
      sum += bytes;
      if (sum > SLICE_BYTES || SHARED.some((offset) => this.#word(next + offset) !== this.#word(first + offset))) break;
      slots.push(slot);
      more.push(bytes, this.#word(next + DESCRIPTOR_REMOTE_OFFSET_OFFSET));
    }
    const runs = kind === DESCRIPTOR_PUT ? this.#localOf(operation) : undefined;
    if (typeof runs === "number") {
      this.#end(operation, runs);
      return;
    }
    const ask = ++this.#asks >>> 0;
    this.#asked.set(ask, operation);
    const descriptor = this.#memory.words.slice(first >>> 2, (first >>> 2) + DESCRIPTOR_WORDS);
    const index = DESCRIPTOR_REMOTE_INDEX_OFFSET >>> 2;
    descriptor[index] = (descriptor[index] as number) % this.#map.regions;
    this.#send(from, to, { ask, descriptor, moved, more, data: runs && this.#copyOf(runs) });
  }

  /** A task has answered. False: there is no such request to it, or its data has the wrong length. */
  answered(number: number, ask: number, result: number, data: Uint8Array | undefined): boolean {
    const operation = this.#asked.get(ask);
    if (operation === undefined || taskOf(operation.to) !== number) return false;
    this.#asked.delete(ask);
    const { kind, code } = operation;
    const isRmw = kind === DESCRIPTOR_RMW;
    const brings = result === TRANSFER_DONE && (isRmw ? (code & RMW_FETCH) !== 0 : kind === DESCRIPTOR_GET);
    const runs = brings ? this.#localOf(operation) : [];
    let state = result;
    if (typeof runs === "number") state = runs;
    else if (lengthOf(runs) !== (data?.length ?? 0)) {
      this.#end(operation, TRANSFER_INVALID);
      return false;
    } else spread(data, runs);
    const goesOn = state === TRANSFER_DONE && !isRmw && operation.moved + SLICE_BYTES < code;
    if (goesOn) {
      operation.moved += SLICE_BYTES;
      this.#ask(operation, 1);
    } else this.#end(operation, state);
    return true;
  }

  // ── At the target ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Does what a frame of another node's context asks for. False: it is malformed. */
  answer(from: Endpoint, to: Endpoint, { ask, descriptor, moved, more, data }: Ask): boolean {
    const { bytes } = this.#memory;
    const map = this.#map;
    if (descriptor.length !== DESCRIPTOR_WORDS) return false;
    const word = (offset: number): number => (descriptor[offset >>> 2] as number) >>> 0;
    const [kind, code] = [word(DESCRIPTOR_KIND_OFFSET), word(DESCRIPTOR_BYTES_OFFSET)];
    const isRmw = kind === DESCRIPTOR_RMW;
    if (moved > (isRmw ? 0 : code) || word(DESCRIPTOR_REMOTE_INDEX_OFFSET) >= map.regions) return false;
    const slot = this.#addresses.slotOf(taskOf(to));
    const index = slot * map.regions + word(DESCRIPTOR_REMOTE_INDEX_OFFSET);
    const generation = word(DESCRIPTOR_REMOTE_GENERATION_OFFSET);
    const runs: Uint8Array[] = [];
    let result = TRANSFER_DONE;
    let pointer = 0;
    // The bytes and the offset of each operation. Of several, the first is whole, too.
    const part = partOf(kind, code, moved);
    const asked = Uint32Array.of(part, word(DESCRIPTOR_REMOTE_OFFSET_OFFSET), ...more);
    for (let i = 0; i < asked.length; i += 2) {
      const [size = 0, offset = 0] = asked.subarray(i);
      // Each part is refused if the whole operation does not fit the region.
      const whole = i > 0 || isRmw ? size : code;
      const place = resolveRegion(this.#kernel, map, index, generation, offset, whole);
      if (place.result !== TRANSFER_DONE) result = remoteResult(place.result);
      pointer = place.pointer + moved;
      runs.push(bytes.subarray(pointer, pointer + size));
    }
    const sum = lengthOf(runs);
    if (more.length > 0 && (part !== code || sum > SLICE_BYTES)) return false;
    if ((data?.length ?? 0) !== (kind === DESCRIPTOR_PUT ? sum : 0)) return false;
    let back: Uint8Array | undefined;
    if (result === TRANSFER_DONE && isRmw) {
      const old = this.#change(pointer, descriptor);
      if (old === undefined) result = TRANSFER_INVALID;
      else if ((code & RMW_FETCH) !== 0) back = old.subarray(0, part);
      if (old !== undefined && (code & RMW_NOTIFY) !== 0) this.#kernel.ring(taskSlot(map, slot)); // SYNC park (word)
    } else if (result === TRANSFER_DONE) {
      if (kind === DESCRIPTOR_PUT) spread(data, runs);
      else back = this.#copyOf(runs);
    }
    this.#send(to, from, { answer: ask, result, data: back });
    return true;
  }

  /**
   * Changes a word of a region, as change() of the kernels. Returns the old value's bytes; undefined: it is no valid RMW.
   */
  #change(pointer: number, descriptor: Int32Array): Uint8Array | undefined {
    const word = (offset: number): number => descriptor[offset >>> 2] as number;
    const wide = (offset: number): bigint => (BigInt(word(offset + 4) >>> 0) << 32n) | BigInt(word(offset) >>> 0);
    const code = word(DESCRIPTOR_BYTES_OFFSET);
    const what = code & RMW_OPERATION_MASK;
    const isWide = (code & RMW_WIDE) !== 0;
    if (what < RMW_SET || what > RMW_XOR || (code & ~RMW_KNOWN) !== 0) return undefined;
    if (pointer % (isWide ? 8 : 4) !== 0) return undefined;
    const compares = (code & RMW_COMPARE) !== 0;
    const [value, test] = [DESCRIPTOR_VALUE_OFFSET, DESCRIPTOR_TEST_OFFSET];
    const old = isWide
      ? this.#atomics.changeWide(pointer, what, wide(value), wide(test), compares)
      : BigInt(this.#atomics.changeWord(pointer, what, word(value), word(test), compares));
    return new Uint8Array(BigInt64Array.of(BigInt.asIntN(64, old)).buffer);
  }
}
