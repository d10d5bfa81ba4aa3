// Small formatted job memories, with the kernels under test over them.
import { readFileSync } from "node:fs";
import {
  ADVANCE_EVENTS_MASK,
  ATTENDED_SIZE,
  CONTEXT_ATTENDED_COUNT_OFFSET,
  CONTEXT_EVENTS_OFFSET,
  CONTEXT_LANE_COUNT_OFFSET,
  CONTEXT_LANES_OFFSET,
  CONTEXT_OPEN,
  CONTEXT_STATE_OFFSET,
  DESCRIPTOR_SIZE,
  EVENT_SIZE,
  INJECTION_MASK_OFFSET,
  JOB_DUE_OFFSET,
  KIND_MESSAGE,
  LANE_CAPACITY_OFFSET,
  LANE_CONTROL_SIZE,
  LANE_TAIL_OFFSET,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SIZE,
  RECORD_KIND_MASK,
  RECORD_KIND_SHIFT,
  RECORD_LENGTH_MASK,
  TASK_STATE_OFFSET,
  TASK_UP,
} from "../../assembly/layout.js";
import { type Memory, memoryOf, type PacketKernel } from "../../src/kernel/kernel.js";
import { twinPacketKernel } from "../../src/kernel/twin/index.js";
import { wasmKernel, wasmModule } from "../../src/kernel/wasm.js";
import { formatMemory } from "../../src/memory/format.js";
import {
  contextBlock,
  engineSlot,
  injectionFifo,
  type Limits,
  type MemoryMap,
  memoryMap,
  taskSlot,
} from "../../src/memory/map.js";

/** wasm: the module that is shipped; debug: the same sources, unoptimised; twin: the TypeScript ones. */
export type Build = "wasm" | "debug" | "twin";

/** Which area of the map 2^31 lies in: where a pointer's sign bit turns. */
export type Straddle = "heap" | "context" | "injection";

export interface RigOptions extends Omit<Partial<Limits>, "engine"> {
  /** Who processes descriptors: "inline" (the default), each task its own; "thread", one thread for all tasks. */
  readonly engine?: "inline" | "thread";
  readonly producer?: Build;
  /** Default: as the producer. */
  readonly consumer?: Build;
  readonly straddle?: Straddle | undefined;
  /** Number of the node's first task (default 0). */
  readonly first?: number;
  /** Rigs that are used at the same time need memories of their own. */
  readonly slot?: number;
}

/** One event of a batch, with a copy of its body. */
export interface TakenEvent {
  readonly origin: number;
  readonly kind: number;
  readonly length: number;
  readonly meta: number;
  /** Pointer to the body. */
  readonly body: number;
  readonly bytes: number[];
}

const TWO_TO_31 = 2 ** 31;
const WASM_PAGE = 65536;
/** A memory's room for the areas of a rig is a multiple of this. */
const ROOM = 32 * 1024 ** 2;

interface Pooled {
  readonly shared: WebAssembly.Memory;
  readonly memory: Memory;
  readonly kernels: Map<Build, PacketKernel>;
  used: [from: number, to: number];
}

/** Memories are used again: each one takes gigabytes of address space, which come back only when V8 collects it. */
const pool = new Map<string, Pooled>();

function pooled(bytes: number, slot: number): Pooled {
  const pages = Math.ceil(bytes / WASM_PAGE);
  const key = `${pages}/${slot}`;
  let found = pool.get(key);
  if (found === undefined) {
    const shared = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    found = {
      shared,
      memory: memoryOf(shared.buffer as unknown as SharedArrayBuffer, undefined, shared),
      kernels: new Map(),
      used: [0, 0],
    };
    pool.set(key, found);
  }
  return found;
}

let debugModule: WebAssembly.Module | undefined;

function kernelOf({ shared, memory, kernels }: Pooled, build: Build): PacketKernel {
  let kernel = kernels.get(build);
  if (kernel === undefined) {
    if (build === "twin") kernel = twinPacketKernel(memory);
    else if (build === "wasm") kernel = wasmKernel(shared, wasmModule());
    else {
      debugModule ??= new WebAssembly.Module(readFileSync(new URL("../../dist/pamir.debug.wasm", import.meta.url)));
      kernel = wasmKernel(shared, debugModule);
    }
    kernels.set(build, kernel);
  }
  return kernel;
}

function baseOf(limits: Limits, straddle: Straddle | undefined): number {
  const map = memoryMap(limits);
  // Behind the first page of the heap: inside the first lane that is longer than a page.
  if (straddle === "heap") return TWO_TO_31 - map.heapBase - PAGE_SIZE;
  // Between the events of the first context block.
  if (straddle === "context") return TWO_TO_31 - map.contextsBase - CONTEXT_EVENTS_OFFSET - 8 * EVENT_SIZE;
  // Between two slots of the first injection FIFO; of a large one, in its completion bit mask.
  if (straddle === "injection") return TWO_TO_31 - map.injectionBase - INJECTION_MASK_OFFSET - 2 * DESCRIPTOR_SIZE;
  return 0;
}

/** A job's memory, and the kernels that stand for its two sides. */
export class Rig {
  readonly producer: PacketKernel;
  readonly consumer: PacketKernel;
  readonly memory: Memory;
  readonly map: MemoryMap;

  constructor(producer: PacketKernel, consumer: PacketKernel, memory: Memory, map: MemoryMap) {
    this.producer = producer;
    this.consumer = consumer;
    this.memory = memory;
    this.map = map;
  }

  word(pointer: number): number {
    return (this.memory.words[pointer >>> 2] as number) >>> 0;
  }

  setWord(pointer: number, value: number): void {
    this.memory.words[pointer >>> 2] = value;
  }

  /** Bytes of the memory, copied. */
  read(pointer: number, length: number): number[] {
    return [...this.memory.bytes.subarray(pointer, pointer + length)];
  }

  write(pointer: number, bytes: ArrayLike<number>): void {
    this.memory.bytes.set(bytes, pointer);
  }

  /** The whole map, as one view. */
  area(): Buffer {
    return Buffer.from(this.memory.buffer, this.map.job, this.map.end - this.map.job);
  }

  context(ordinal: number): number {
    return contextBlock(this.map, ordinal);
  }

  task(task: number): number {
    return taskSlot(this.map, task);
  }

  /** The slot of the engine thread. */
  get engine(): number {
    return engineSlot(this.map);
  }

  /** Ordinals of the contexts that the engine thread is to look at. */
  due(): number[] {
    return this.bits(this.map.job + JOB_DUE_OFFSET);
  }

  /** One of the injection FIFOs of an endpoint's ordinal. */
  fifo(ordinal = 0, number = 0): number {
    return injectionFifo(this.map, ordinal, number);
  }

  /** The word in a context's table with an origin's lane. */
  entry(origin: number, target = 0): number {
    return this.context(target) + CONTEXT_LANES_OFFSET + 4 * origin;
  }

  /** Origins of the lanes that the context polls, in ascending order. */
  attended(target = 0): number[] {
    const context = this.context(target);
    const table = context + CONTEXT_LANES_OFFSET + 4 * this.word(context + CONTEXT_LANE_COUNT_OFFSET);
    const count = this.word(context + CONTEXT_ATTENDED_COUNT_OFFSET);
    return Array.from({ length: count }, (_, i) => this.word(table + i * ATTENDED_SIZE + 4)).sort((a, b) => a - b);
  }

  /** Numbers of the bits that are set in a bit set of 1,024. */
  bits(pointer: number): number[] {
    const found: number[] = [];
    for (let bit = 0; bit < 1024; bit++) {
      if (((this.word(pointer + 4 * (bit >>> 5)) >>> (bit & 31)) & 1) === 1) found.push(bit);
    }
    return found;
  }

  /** Opens a lane that there is memory for. */
  open(origin: number, target = 0, capacity = 1024, recordMax = 256): number {
    const lane = this.producer.laneOpen(this.map.job, origin, target, capacity, recordMax);
    if (lane === OPEN_NO_MEMORY || lane === OPEN_BUSY) throw new Error(`laneOpen() gave ${lane}`);
    return lane;
  }

  /** As open(), with an overhang of exactly `recordMax`, and with positions that begin at `start`. */
  openAt(start: number, origin: number, target = 0, capacity = 1024, recordMax = 256): number {
    const { job } = this.map;
    const pages = Math.ceil((LANE_CONTROL_SIZE + capacity + recordMax) / PAGE_SIZE);
    const lane = this.producer.heapAllocate(job, pages, 0);
    if (lane === OPEN_NO_MEMORY || lane === OPEN_BUSY) throw new Error(`heapAllocate() gave ${lane}`);
    this.producer.laneInit(job, lane, origin, target, capacity, recordMax, start);
    this.producer.storeWord(this.entry(origin, target), lane);
    return lane;
  }

  /** Sends one record; false: no room. */
  send(lane: number, body: ArrayLike<number>, meta = 0, kind: number = KIND_MESSAGE): boolean {
    const pointer = this.producer.laneReserve(lane, body.length);
    if (pointer === 0) return false;
    this.write(pointer, body);
    this.producer.laneCommit(lane, kind, body.length, meta);
    return true;
  }

  /** advance(), and the events it found; they stay in hand until release(). */
  advance(target = 0, rounds = 1): TakenEvent[] {
    return this.events(this.consumer.advance(this.context(target), rounds), target);
  }

  /** The events behind a result of advance(). */
  events(result: number, target = 0): TakenEvent[] {
    const first = this.context(target) + CONTEXT_EVENTS_OFFSET;
    return Array.from({ length: result & ADVANCE_EVENTS_MASK }, (_, i) => {
      const event = first + i * EVENT_SIZE;
      const commit = this.word(event);
      const length = commit & RECORD_LENGTH_MASK;
      const body = this.word(event + 8);
      return {
        origin: this.word(event + 12),
        kind: (commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK,
        length,
        meta: this.word(event + 4),
        body,
        bytes: this.read(body, length),
      };
    });
  }

  release(target = 0): void {
    this.consumer.release(this.context(target));
  }

  /** One advance() and its release(). */
  take(target = 0, rounds = 1): TakenEvent[] {
    const events = this.advance(target, rounds);
    if (events.length > 0) this.release(target);
    return events;
  }

  /** The last look before a task falls asleep: gives back what release() kept, and finds nothing to do. */
  settle(target = 0): void {
    if (this.consumer.peek(this.context(target)) !== 0) throw new Error("there is something left to do");
  }

  /** Everything that is there, batch after batch. */
  drain(target = 0): TakenEvent[] {
    const all: TakenEvent[] = [];
    for (;;) {
      const events = this.take(target);
      if (events.length === 0) return all;
      all.push(...events);
    }
  }

  /** The word at tail: where the next record's commit word will stand, it is always 0. */
  tailWord(lane: number): number {
    const tail = this.word(lane + LANE_TAIL_OFFSET);
    return this.word(lane + LANE_CONTROL_SIZE + (tail & (this.word(lane + LANE_CAPACITY_OFFSET) - 1)));
  }
}

/** An engine thread serves those that are there: the node's own tasks. */
function bringUp(rig: Rig): void {
  const { locals, contexts } = rig.map;
  for (let task = 0; task < locals; task++) rig.setWord(rig.task(task) + TASK_STATE_OFFSET, TASK_UP);
  rig.setWord(rig.engine + TASK_STATE_OFFSET, TASK_UP);
  for (let i = 0; i < locals * contexts; i++) rig.setWord(rig.context(i) + CONTEXT_STATE_OFFSET, CONTEXT_OPEN);
}

/** A fresh job: as launch() makes it, but small. It takes the place of the last one in the same slot. */
export function makeRig(options: RigOptions = {}): Rig {
  const { tasks = 3, contexts = 2, laneBytes = 1024, heapBytes = 64 * PAGE_SIZE, straddle, slot = 0 } = options;
  const { first = 0, regions = 16, fifos = 2, slots = 64, locals = tasks, jobTasks = tasks } = options;
  const { producer = "wasm", consumer = producer } = options;
  const engine = options.engine === "thread";
  const limits = { tasks, contexts, laneBytes, heapBytes, regions, fifos, slots, engine, locals, jobTasks };
  const map = memoryMap(limits, baseOf(limits, straddle));
  const bytes = Math.max((straddle === undefined ? 0 : TWO_TO_31) + ROOM, Math.ceil(map.end / ROOM) * ROOM);
  const place = pooled(bytes, slot);
  place.memory.bytes.fill(0, ...place.used);
  place.used = [map.job, map.end];
  const rig = new Rig(kernelOf(place, producer), kernelOf(place, consumer), place.memory, map);
  // What lies in free memory means nothing: were it read as a commit word, it would be a record.
  place.memory.bytes.fill(0xa5, map.heapBase, map.end);
  formatMemory(map, place.memory, 2, first);
  if (engine) bringUp(rig);
  return rig;
}
