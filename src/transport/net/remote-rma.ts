// One-sided operations between tasks that share no memory. At the origin, the descriptor of an injection FIFO that goes to
// another task is sent there, a slice of its bytes at a time; one of each FIFO is away at once, so that a FIFO stays in
// order. At the target, each part is done by its own engine, on bytes of a region that is there for that: the workspace.
import {
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
  DESCRIPTOR_WORDS,
  INJECTION_FAILED_OFFSET,
  INJECTION_FIRST_OFFSET,
  INJECTION_HEAD_OFFSET,
  INJECTION_REFUSED_OFFSET,
  INJECTION_RESULT_OFFSET,
  INJECTION_SLOTS_OFFSET,
  INJECTION_TAIL_OFFSET,
  RMW_BEHIND,
  RMW_FETCH,
  RMW_WIDE,
  SLICE_BYTES,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_INVALID,
} from "../../../assembly/layout.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { type MemoryMap, ordinalOf } from "../../memory/map.js";
import type { Workspace } from "../transport.js";
import type { Frame } from "./frames.js";
import { type Resolved, remoteResult, resolveRegion } from "./regions.js";
import { WORKSPACE_SLICE_OFFSET } from "./workspace.js";

type Ask = Extract<Frame, { readonly ask: number }>;

/** A descriptor of an injection FIFO that is away. */
interface AwayOperation {
  readonly descriptor: number;
  /** Ordinal of the context whose FIFO it is. */
  readonly origin: number;
  readonly task: number;
  moved: number;
  /** Bytes of the part that is asked for. */
  part: number;
  result: number | undefined;
}

export class RemoteRma {
  /** The region through which others' operations go; this task's client gives it. */
  workspace: Workspace | undefined;
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #task: number;
  readonly #hasEnded: (task: number) => boolean;
  readonly #send: (from: number, to: number, frame: Frame) => void;
  /** By injection FIFO. */
  readonly #away = new Map<number, AwayOperation>();
  readonly #asked = new Map<number, AwayOperation>();
  #asks = 0;

  constructor(
    kernel: Kernel,
    memory: Memory,
    map: MemoryMap,
    task: number,
    hasEnded: (task: number) => boolean,
    send: (from: number, to: number, frame: Frame) => void,
  ) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#task = task;
    this.#hasEnded = hasEnded;
    this.#send = send;
  }

  /** A task has ended: what is away to it is over. */
  ended(task: number): void {
    for (const operation of this.#away.values()) {
      if (operation.task === task && operation.result === undefined) operation.result = TRANSFER_ENDED;
    }
    for (const [ask, operation] of this.#asked) if (operation.task === task) this.#asked.delete(ask);
  }

  // ── At the origin ─────────────────────────────────────────────────────────────────────────────────────────────

  #word(pointer: number): number {
    return (this.#memory.words[pointer >>> 2] as number) >>> 0;
  }

  /** Task of the region to which a descriptor goes. */
  #ownerOf(descriptor: number): number {
    return Math.floor(this.#word(descriptor + DESCRIPTOR_REMOTE_INDEX_OFFSET) / this.#map.regions);
  }

  /** Whether a descriptor goes to another task. */
  isAway(descriptor: number): boolean {
    const kind = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET);
    return kind !== DESCRIPTOR_COMPLETION && kind !== DESCRIPTOR_FENCE && this.#ownerOf(descriptor) !== this.#task;
  }

  /** What can be said here of a descriptor that goes to another task: TRANSFER_…. */
  check(descriptor: number): number {
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

  /** Where the local bytes of a descriptor are, from byte `moved` on. */
  #localOf(descriptor: number, moved: number, bytes: number): Resolved {
    const index = this.#word(descriptor + DESCRIPTOR_LOCAL_INDEX_OFFSET);
    const generation = this.#word(descriptor + DESCRIPTOR_LOCAL_GENERATION_OFFSET);
    const offset = this.#word(descriptor + DESCRIPTOR_LOCAL_OFFSET_OFFSET) + moved;
    return resolveRegion(this.#memory, this.#map, index, generation, offset, bytes);
  }

  /**
   * As `engineRun` of the kernels, for a FIFO of which some descriptors go to other tasks.
   * @returns descriptors that are left, negated if the first of them is away: nothing can be done before its answer
   */
  engineRun(job: number, fifo: number, most: number): number {
    const { words } = this.#memory;
    const [headAt, tailAt] = [(fifo + INJECTION_HEAD_OFFSET) >>> 2, (fifo + INJECTION_TAIL_OFFSET) >>> 2];
    const tail = words[tailAt] as number;
    for (;;) {
      // The engine of this memory has what stands before the next one that goes away.
      let next = words[headAt] as number;
      while (next !== tail && !this.isAway(this.#slotOf(fifo, next))) next = (next + 1) | 0;
      words[tailAt] = next;
      const left = this.#kernel.engineRun(job, fifo, most);
      words[tailAt] = tail;
      if (left > 0) return left + ((tail - next) >>> 0);
      if (next === tail) return 0;
      const result = this.#carry(fifo, next);
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
  #carry(fifo: number, position: number): number | undefined {
    let operation = this.#away.get(fifo);
    if (operation === undefined) {
      const descriptor = this.#slotOf(fifo, position);
      // As isCutOff() of the kernels.
      const isRmw = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET) === DESCRIPTOR_RMW;
      const before = this.#word(fifo + INJECTION_RESULT_OFFSET);
      const isBehind = isRmw && (this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET) & RMW_BEHIND) !== 0;
      if (isBehind && before !== TRANSFER_DONE) return before;
      const { injectionBase, injectionSize, fifos } = this.#map;
      const origin = Math.floor((fifo - injectionBase) / (injectionSize * fifos));
      operation = { descriptor, origin, task: this.#ownerOf(descriptor), moved: 0, part: 0, result: undefined };
      this.#away.set(fifo, operation);
      this.#ask(operation);
    }
    if (operation.result !== undefined) this.#away.delete(fifo);
    return operation.result;
  }

  /** Asks for the next part of an operation, at most a slice. */
  #ask(operation: AwayOperation): void {
    const { descriptor, moved, origin, task } = operation;
    if (this.#hasEnded(task)) {
      operation.result = TRANSFER_ENDED;
      return;
    }
    const kind = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET);
    const left = kind === DESCRIPTOR_RMW ? 0 : this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET) - moved;
    operation.part = Math.min(left, SLICE_BYTES);
    let data: Uint8Array | undefined;
    if (kind === DESCRIPTOR_PUT) {
      const { result, pointer } = this.#localOf(descriptor, moved, operation.part);
      if (result !== TRANSFER_DONE) {
        operation.result = result;
        return;
      }
      data = this.#memory.bytes.slice(pointer, pointer + operation.part);
    }
    const at = descriptor >>> 2;
    const ask = ++this.#asks >>> 0;
    this.#asked.set(ask, operation);
    const copy = this.#memory.words.slice(at, at + DESCRIPTOR_WORDS);
    this.#send(origin, ordinalOf(this.#map, task, 0), { ask, descriptor: copy, moved, data });
  }

  /** A task has answered. False: nobody has asked it that. */
  answered(task: number, ask: number, result: number, data: Uint8Array | undefined): boolean {
    const operation = this.#asked.get(ask);
    if (operation?.task !== task) return false;
    const { descriptor } = operation;
    const kind = this.#word(descriptor + DESCRIPTOR_KIND_OFFSET);
    this.#asked.delete(ask);
    const given = result === TRANSFER_DONE ? this.#givenBytes(kind, descriptor, operation.part) : 0;
    if ((data?.length ?? 0) !== given) {
      operation.result = TRANSFER_INVALID;
      return false;
    }
    let state = result;
    if (state === TRANSFER_DONE && data !== undefined) {
      const place = this.#localOf(descriptor, operation.moved, data.length);
      state = place.result;
      if (state === TRANSFER_DONE) this.#memory.bytes.set(data, place.pointer);
    }
    operation.moved += operation.part;
    const isOver = kind === DESCRIPTOR_RMW || operation.moved === this.#word(descriptor + DESCRIPTOR_BYTES_OFFSET);
    if (state !== TRANSFER_DONE || isOver) operation.result = state;
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

  /** Does a part of an operation of another task's context, at the workspace. False: no such part can be asked for. */
  answer(from: number, to: number, { ask, descriptor: given, moved, data }: Ask): boolean {
    const { words, bytes } = this.#memory;
    const { workspace } = this;
    if (workspace === undefined || given.length !== DESCRIPTOR_WORDS) return false;
    const pointer = workspace.bytes.byteOffset;
    const at = pointer >>> 2;
    words.set(given, at);
    const kind = this.#word(pointer + DESCRIPTOR_KIND_OFFSET);
    const code = this.#word(pointer + DESCRIPTOR_BYTES_OFFSET);
    const index = this.#word(pointer + DESCRIPTOR_REMOTE_INDEX_OFFSET);
    const generation = this.#word(pointer + DESCRIPTOR_REMOTE_GENERATION_OFFSET);
    const offset = this.#word(pointer + DESCRIPTOR_REMOTE_OFFSET_OFFSET);
    const isRmw = kind === DESCRIPTOR_RMW;
    const size = isRmw ? ((code & RMW_WIDE) === 0 ? 4 : 8) : code;
    if (moved > (isRmw ? 0 : code)) return false;
    const part = isRmw ? size : Math.min(code - moved, SLICE_BYTES);
    if ((data?.length ?? 0) !== (kind === DESCRIPTOR_PUT ? part : 0)) return false;
    // The whole of it is refused, where the whole is not right.
    let result = remoteResult(resolveRegion(this.#memory, this.#map, index, generation, offset, size).result);
    const first = pointer + WORKSPACE_SLICE_OFFSET;
    if (result === TRANSFER_DONE) {
      if (data !== undefined) bytes.set(data, first);
      if (!isRmw) words[at + (DESCRIPTOR_BYTES_OFFSET >>> 2)] = part;
      words[at + (DESCRIPTOR_LOCAL_INDEX_OFFSET >>> 2)] = workspace.index;
      words[at + (DESCRIPTOR_LOCAL_GENERATION_OFFSET >>> 2)] = workspace.generation;
      words[at + (DESCRIPTOR_LOCAL_OFFSET_OFFSET >>> 2)] = WORKSPACE_SLICE_OFFSET;
      words[at + (DESCRIPTOR_REMOTE_OFFSET_OFFSET >>> 2)] = offset + moved;
      result = this.#kernel.perform(this.#map.job, pointer, SLICE_BYTES);
    }
    const back = result === TRANSFER_DONE ? this.#givenBytes(kind, pointer, part) : 0;
    this.#send(to, from, { answer: ask, result, data: back === 0 ? undefined : bytes.slice(first, first + back) });
    return true;
  }
}
