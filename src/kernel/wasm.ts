// Loads the wasm module and binds it to a job's memory.
import { instantiateSync } from "@assemblyscript/loader";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { wasmHex } from "../generated/wasm.js";
import type { Kernel } from "./kernel.js";

/** What the module exports: the functions of Kernel, u32 results as signed numbers. */
type Exports = Omit<Kernel, "name"> & { layoutHash(): number };

let compiled: WebAssembly.Module | undefined;

/** Size of the module in bytes. */
export function wasmBytes(): number {
  return wasmHex.length / 2;
}

/** The compiled kernels; compiled once per thread, and sent to workers in that form. */
export function wasmModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(
    Uint8Array.from({ length: wasmHex.length / 2 }, (_, i) => Number.parseInt(wasmHex.slice(2 * i, 2 * i + 2), 16)),
  );
  return compiled;
}

/**
 * Methods over one private field for each function: V8 calls a method in 7.7 ns where a function held as an own property
 * of the kernel took 12–13.6 ns (Node 20).
 */
class WasmKernel implements Kernel {
  readonly name = "wasm";
  readonly #loadWord: Exports["loadWord"];
  readonly #storeWord: Exports["storeWord"];
  readonly #exchangeIf: Exports["exchangeIf"];
  readonly #addWord: Exports["addWord"];
  readonly #clearBits: Exports["clearBits"];
  readonly #ring: Exports["ring"];
  readonly #ringAlways: Exports["ringAlways"];
  readonly #bellArm: Exports["bellArm"];
  readonly #bellDisarm: Exports["bellDisarm"];
  readonly #bellWait: Exports["bellWait"];
  readonly #spinEnter: Exports["spinEnter"];
  readonly #spinLeave: Exports["spinLeave"];
  readonly #heapInit: Exports["heapInit"];
  readonly #heapAllocate: Exports["heapAllocate"];
  readonly #heapFree: Exports["heapFree"];
  readonly #regionAllocate: Exports["regionAllocate"];
  readonly #regionOpen: Exports["regionOpen"];
  readonly #regionClose: Exports["regionClose"];
  readonly #injectionInit: Exports["injectionInit"];
  readonly #inject: Exports["inject"];
  readonly #perform: Exports["perform"];
  readonly #submit: Exports["submit"];
  readonly #engineRun: Exports["engineRun"];
  readonly #completionTake: Exports["completionTake"];
  readonly #heapReclaim: Exports["heapReclaim"];
  readonly #heapFreePages: Exports["heapFreePages"];
  readonly #copyBytes: Exports["copyBytes"];
  readonly #laneInit: Exports["laneInit"];
  readonly #laneOpen: Exports["laneOpen"];
  readonly #laneRoom: Exports["laneRoom"];
  readonly #laneSendWords: Exports["laneSendWords"];
  readonly #laneReserve: Exports["laneReserve"];
  readonly #laneCommit: Exports["laneCommit"];
  readonly #laneAbort: Exports["laneAbort"];
  readonly #laneWantRoom: Exports["laneWantRoom"];
  readonly #laneReplace: Exports["laneReplace"];
  readonly #laneReclaim: Exports["laneReclaim"];
  readonly #laneRelease: Exports["laneRelease"];
  readonly #laneOf: Exports["laneOf"];
  readonly #advance: Exports["advance"];
  readonly #release: Exports["release"];
  readonly #peek: Exports["peek"];
  readonly #lanePeek: Exports["lanePeek"];
  readonly #lanePause: Exports["lanePause"];
  readonly #laneResume: Exports["laneResume"];
  readonly #laneReady: Exports["laneReady"];
  readonly #laneSwitch: Exports["laneSwitch"];

  constructor(exports: Exports) {
    this.#loadWord = exports.loadWord;
    this.#storeWord = exports.storeWord;
    this.#exchangeIf = exports.exchangeIf;
    this.#addWord = exports.addWord;
    this.#clearBits = exports.clearBits;
    this.#ring = exports.ring;
    this.#ringAlways = exports.ringAlways;
    this.#bellArm = exports.bellArm;
    this.#bellDisarm = exports.bellDisarm;
    this.#bellWait = exports.bellWait;
    this.#spinEnter = exports.spinEnter;
    this.#spinLeave = exports.spinLeave;
    this.#heapInit = exports.heapInit;
    this.#heapAllocate = exports.heapAllocate;
    this.#heapFree = exports.heapFree;
    this.#regionAllocate = exports.regionAllocate;
    this.#regionOpen = exports.regionOpen;
    this.#regionClose = exports.regionClose;
    this.#injectionInit = exports.injectionInit;
    this.#inject = exports.inject;
    this.#perform = exports.perform;
    this.#submit = exports.submit;
    this.#engineRun = exports.engineRun;
    this.#completionTake = exports.completionTake;
    this.#heapReclaim = exports.heapReclaim;
    this.#heapFreePages = exports.heapFreePages;
    this.#copyBytes = exports.copyBytes;
    this.#laneInit = exports.laneInit;
    this.#laneOpen = exports.laneOpen;
    this.#laneRoom = exports.laneRoom;
    this.#laneSendWords = exports.laneSendWords;
    this.#laneReserve = exports.laneReserve;
    this.#laneCommit = exports.laneCommit;
    this.#laneAbort = exports.laneAbort;
    this.#laneWantRoom = exports.laneWantRoom;
    this.#laneReplace = exports.laneReplace;
    this.#laneReclaim = exports.laneReclaim;
    this.#laneRelease = exports.laneRelease;
    this.#laneOf = exports.laneOf;
    this.#advance = exports.advance;
    this.#release = exports.release;
    this.#peek = exports.peek;
    this.#lanePeek = exports.lanePeek;
    this.#lanePause = exports.lanePause;
    this.#laneResume = exports.laneResume;
    this.#laneReady = exports.laneReady;
    this.#laneSwitch = exports.laneSwitch;
  }

  loadWord(pointer: number): number {
    return this.#loadWord(pointer);
  }

  storeWord(pointer: number, value: number): void {
    this.#storeWord(pointer, value);
  }

  exchangeIf(pointer: number, expected: number, replacement: number): number {
    return this.#exchangeIf(pointer, expected, replacement);
  }

  addWord(pointer: number, value: number): number {
    return this.#addWord(pointer, value);
  }

  clearBits(pointer: number, bits: number): void {
    this.#clearBits(pointer, bits);
  }

  ring(task: number): void {
    this.#ring(task);
  }

  ringAlways(task: number): void {
    this.#ringAlways(task);
  }

  bellArm(task: number): number {
    return this.#bellArm(task);
  }

  bellDisarm(task: number): void {
    this.#bellDisarm(task);
  }

  bellWait(task: number, seen: number, milliseconds: number): number {
    return this.#bellWait(task, seen, milliseconds);
  }

  spinEnter(job: number, task: number, tasks: number): number {
    return this.#spinEnter(job, task, tasks);
  }

  spinLeave(job: number, task: number): void {
    this.#spinLeave(job, task);
  }

  heapInit(job: number): void {
    this.#heapInit(job);
  }

  heapAllocate(job: number, pages: number, owner: number): number {
    return this.#heapAllocate(job, pages, owner) >>> 0;
  }

  heapFree(job: number, extent: number): void {
    this.#heapFree(job, extent);
  }

  regionAllocate(job: number, pages: number, owner: number): number {
    return this.#regionAllocate(job, pages, owner) >>> 0;
  }

  regionOpen(job: number, index: number, base: number, bytes: number): number {
    return this.#regionOpen(job, index, base, bytes) >>> 0;
  }

  regionClose(job: number, index: number): void {
    this.#regionClose(job, index);
  }

  injectionInit(fifo: number, slots: number): void {
    this.#injectionInit(fifo, slots);
  }

  perform(job: number, descriptor: number, most: number): number {
    return this.#perform(job, descriptor, most);
  }

  inject(fifo: number, completions: number): number {
    return this.#inject(fifo, completions) >>> 0;
  }

  submit(job: number, fifo: number, hasCallback: boolean): number {
    return this.#submit(job, fifo, hasCallback);
  }

  engineRun(job: number, fifo: number): number {
    return this.#engineRun(job, fifo);
  }

  completionTake(fifo: number): number {
    return this.#completionTake(fifo) >>> 0;
  }

  heapReclaim(job: number, owner: number): void {
    this.#heapReclaim(job, owner);
  }

  heapFreePages(job: number): number {
    return this.#heapFreePages(job);
  }

  copyBytes(to: number, from: number, bytes: number): void {
    this.#copyBytes(to, from, bytes);
  }

  laneInit(
    job: number,
    lane: number,
    origin: number,
    target: number,
    capacity: number,
    recordMax: number,
    start: number,
  ): void {
    this.#laneInit(job, lane, origin, target, capacity, recordMax, start);
  }

  laneOpen(job: number, origin: number, target: number, capacity: number, recordMax: number): number {
    return this.#laneOpen(job, origin, target, capacity, recordMax) >>> 0;
  }

  laneRoom(lane: number): number {
    return this.#laneRoom(lane);
  }

  laneSendWords(lane: number, bytes: number, meta: number, a: number, b: number): number {
    return this.#laneSendWords(lane, bytes, meta, a, b);
  }

  laneReserve(lane: number, bytes: number): number {
    return this.#laneReserve(lane, bytes) >>> 0;
  }

  laneCommit(lane: number, kind: number, bytes: number, meta: number): void {
    this.#laneCommit(lane, kind, bytes, meta);
  }

  laneAbort(lane: number): void {
    this.#laneAbort(lane);
  }

  laneWantRoom(lane: number, wanted: number): void {
    this.#laneWantRoom(lane, wanted);
  }

  laneReplace(job: number, lane: number, capacity: number, recordMax: number): number {
    return this.#laneReplace(job, lane, capacity, recordMax) >>> 0;
  }

  laneReclaim(job: number, origin: number, target: number): void {
    this.#laneReclaim(job, origin, target);
  }

  laneRelease(lane: number): void {
    this.#laneRelease(lane);
  }

  laneOf(context: number, origin: number): number {
    return this.#laneOf(context, origin) >>> 0;
  }

  advance(context: number, rounds: number): number {
    return this.#advance(context, rounds);
  }

  release(context: number): void {
    this.#release(context);
  }

  peek(context: number): number {
    return this.#peek(context);
  }

  lanePeek(lane: number): number {
    return this.#lanePeek(lane);
  }

  lanePause(lane: number, body: number): void {
    this.#lanePause(lane, body);
  }

  laneResume(context: number, origin: number): void {
    this.#laneResume(context, origin);
  }

  laneReady(context: number, origin: number): void {
    this.#laneReady(context, origin);
  }

  laneSwitch(job: number, context: number, origin: number, fresh: number): void {
    this.#laneSwitch(job, context, origin, fresh);
  }
}

/** The kernels in wasm, over a job's memory. */
export function wasmKernel(memory: WebAssembly.Memory, module: WebAssembly.Module = wasmModule()): Kernel {
  // Not the loader's own exports: they are JavaScript functions with rest parameters around these.
  const exports = instantiateSync(module, { env: { memory } }).instance.exports as unknown as Exports;
  if (exports.layoutHash() >>> 0 !== LAYOUT_HASH >>> 0) {
    throw new Error(
      `pamir.wasm was built from other sources: layout ${exports.layoutHash() >>> 0}, not ${LAYOUT_HASH}`,
    );
  }
  return new WasmKernel(exports);
}
