// One-sided operations between nodes. At the origin, the engine stops at a descriptor for another node. The agent sends it
// there, one slice of its bytes at a time. One descriptor of each FIFO is away at once, so that a FIFO stays in order. At
// the target, the agent does each part.
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
import type { CopyForFrame, Frame, SendFrame } from "./frames.js";
import { type Resolved, remoteResult, resolveRegion } from "./regions.js";

/** Bits of an RMW's code. */
const RMW_KNOWN = RMW_OPERATION_MASK | RMW_FETCH | RMW_COMPARE | RMW_WIDE | RMW_NOTIFY | RMW_BEHIND;

type Ask = Extract<Frame, { readonly ask: number }>;

/** A descriptor of an injection FIFO that is away. */
interface AwayOperation {
  readonly fifo: number;
  /** Ordinal of the context whose FIFO it is. */
  readonly origin: number;
  readonly descriptor: number;
  readonly from: Endpoint;
  readonly to: Endpoint;
  moved: number;
  /** Bytes of the part that is asked for. */
  part: number;
}

export class RemoteRma {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: Addresses;
  readonly #send: SendFrame;
  /** Copies bytes of the node's memory into a buffer for one frame. */
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
    const { regions } = this.#map;
    const mask = this.#word(fifo + INJECTION_SLOTS_OFFSET) - 1;
    const position = this.#word(fifo + INJECTION_HEAD_OFFSET) & mask;
    const descriptor = this.#word(fifo + INJECTION_FIRST_OFFSET) + (position << DESCRIPTOR_SHIFT);
    const index = this.#word(descriptor + DESCRIPTOR_REMOTE_INDEX_OFFSET);
    const to = this.#addresses.endpointAt(ordinalOf(this.#map, Math.floor(index / regions), 0));
    const from = this.#addresses.endpointAt(origin);
    const operation: AwayOperation = { fifo, origin, descriptor, from, to, moved: 0, part: 0 };
    if (to === NONE) this.#end(operation, TRANSFER_ENDED);
    else this.#ask(operation);
  }

  /** An operation is over: the engine goes on with its FIFO. */
  #end({ fifo, origin }: AwayOperation, result: number): void {
    this.#kernel.engineCarried(fifo, result);
    this.#kernel.engineCall(this.#map.job, origin);
    // The owner may wait for room in the FIFO.
    this.#kernel.ring(this.#word(contextBlock(this.#map, origin) + CONTEXT_TASK_OFFSET));
  }

  /** Where the local bytes of a descriptor are, from byte `moved` on. */
  #localOf(descriptor: number, moved: number, bytes: number): Resolved {
    const index = this.#word(descriptor + DESCRIPTOR_LOCAL_INDEX_OFFSET);
    const generation = this.#word(descriptor + DESCRIPTOR_LOCAL_GENERATION_OFFSET);
    const offset = this.#word(descriptor + DESCRIPTOR_LOCAL_OFFSET_OFFSET) + moved;
    return resolveRegion(this.#kernel, this.#memory, this.#map, index, generation, offset, bytes);
  }

  /** Asks for the next part of an operation, at most a slice. */
  #ask(operation: AwayOperation): void {
    const { descriptor, moved, from, to } = operation;
    const kind = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET);
    const left = kind === DESCRIPTOR_RMW ? 0 : this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET) - moved;
    operation.part = Math.min(left, SLICE_BYTES);
    let data: Uint8Array | undefined;
    if (kind === DESCRIPTOR_PUT) {
      const { result, pointer } = this.#localOf(descriptor, moved, operation.part);
      if (result !== TRANSFER_DONE) {
        this.#end(operation, result);
        return;
      }
      data = this.#copyOf(pointer, operation.part);
    }
    const at = descriptor >>> 2;
    const ask = ++this.#asks >>> 0;
    this.#asked.set(ask, operation);
    const copy = this.#memory.words.slice(at, at + DESCRIPTOR_WORDS);
    const index = DESCRIPTOR_REMOTE_INDEX_OFFSET >>> 2;
    copy[index] = (copy[index] as number) % this.#map.regions;
    this.#send(from, to, { ask, descriptor: copy, moved, data });
  }

  /** A task has answered. False: there is no such request to it, or its data has the wrong length. */
  answered(number: number, ask: number, result: number, data: Uint8Array | undefined): boolean {
    const operation = this.#asked.get(ask);
    if (operation === undefined || taskOf(operation.to) !== number) return false;
    const { descriptor } = operation;
    const kind = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET);
    this.#asked.delete(ask);
    const given = result === TRANSFER_DONE ? this.#givenBytes(kind, descriptor, operation.part) : 0;
    if ((data?.length ?? 0) !== given) {
      this.#end(operation, TRANSFER_INVALID);
      return false;
    }
    let state = result;
    if (state === TRANSFER_DONE && data !== undefined) {
      const place = this.#localOf(descriptor, operation.moved, data.length);
      state = place.result;
      if (state === TRANSFER_DONE) copyInto(this.#memory.bytes, place.pointer, data);
    }
    operation.moved += operation.part;
    const isOver = kind === DESCRIPTOR_RMW || operation.moved === this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET);
    if (state !== TRANSFER_DONE || isOver) this.#end(operation, state);
    else this.#ask(operation);
    return true;
  }

  /** Bytes that come back for a part of an operation. */
  #givenBytes(kind: number, descriptor: number, part: number): number {
    if (kind === DESCRIPTOR_GET) return part;
    const code = this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET);
    if (kind !== DESCRIPTOR_RMW || (code & RMW_FETCH) === 0) return 0;
    return (code & RMW_WIDE) === 0 ? 4 : 8;
  }

  // ── At the target ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Does a part of an operation of another node's context. False: the request is malformed. */
  answer(from: Endpoint, to: Endpoint, { ask, descriptor, moved, data }: Ask): boolean {
    const { bytes } = this.#memory;
    const map = this.#map;
    if (descriptor.length !== DESCRIPTOR_WORDS) return false;
    const word = (offset: number): number => (descriptor[offset >>> 2] as number) >>> 0;
    const [kind, code] = [word(DESCRIPTOR_KIND_OFFSET), word(DESCRIPTOR_BYTES_OFFSET)];
    const isRmw = kind === DESCRIPTOR_RMW;
    const size = isRmw ? ((code & RMW_WIDE) === 0 ? 4 : 8) : code;
    if (moved > (isRmw ? 0 : code) || word(DESCRIPTOR_REMOTE_INDEX_OFFSET) >= map.regions) return false;
    const part = isRmw ? size : Math.min(code - moved, SLICE_BYTES);
    if ((data?.length ?? 0) !== (kind === DESCRIPTOR_PUT ? part : 0)) return false;
    const slot = this.#addresses.slotOf(taskOf(to));
    const index = slot * map.regions + word(DESCRIPTOR_REMOTE_INDEX_OFFSET);
    const generation = word(DESCRIPTOR_REMOTE_GENERATION_OFFSET);
    const offset = word(DESCRIPTOR_REMOTE_OFFSET_OFFSET);
    // Each part is refused if the whole operation does not fit the region.
    const place = resolveRegion(this.#kernel, this.#memory, map, index, generation, offset, size);
    let result = remoteResult(place.result);
    let back: Uint8Array | undefined;
    if (result === TRANSFER_DONE && isRmw) {
      const old = this.#change(place.pointer, descriptor);
      if (old === undefined) result = TRANSFER_INVALID;
      else if ((code & RMW_FETCH) !== 0) back = old.subarray(0, size);
      if (old !== undefined && (code & RMW_NOTIFY) !== 0) this.#kernel.ring(taskSlot(map, slot)); // SYNC park (word)
    } else if (result === TRANSFER_DONE && data !== undefined) copyInto(bytes, place.pointer + moved, data);
    else if (result === TRANSFER_DONE) back = this.#copyOf(place.pointer + moved, part);
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
