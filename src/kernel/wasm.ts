// Loads the wasm module and binds it to a job's memory.
import { instantiateSync } from "@assemblyscript/loader";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { wasmBase64 } from "../generated/wasm.js";
import type { Kernel } from "./kernel.js";

/** What the module exports: the functions of Kernel, u32 results as signed numbers. */
type Exports = Omit<Kernel, "name"> & { layoutHash(): number };

let compiled: WebAssembly.Module | undefined;

/** Size of the module in bytes. */
export function wasmBytes(): number {
  return atob(wasmBase64).length;
}

/** The compiled kernels; compiled once per thread, and sent to workers in that form. */
export function wasmModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(Uint8Array.from(atob(wasmBase64), (letter) => letter.charCodeAt(0)));
  return compiled;
}

/** Methods, since V8 calls them in 7.7 ns where a function held as an own property took 12–13.6 ns (Node 20). */
class WasmKernel implements Kernel {
  readonly name = "wasm";
  readonly #x: Exports;

  constructor(exports: Exports) {
    this.#x = exports;
  }

  loadWord(pointer: number): number {
    return this.#x.loadWord(pointer);
  }

  storeWord(pointer: number, value: number): void {
    this.#x.storeWord(pointer, value);
  }

  exchangeIf(pointer: number, expected: number, replacement: number): number {
    return this.#x.exchangeIf(pointer, expected, replacement);
  }

  addWord(pointer: number, value: number): number {
    return this.#x.addWord(pointer, value);
  }

  clearBits(pointer: number, bits: number): void {
    this.#x.clearBits(pointer, bits);
  }

  ring(task: number): void {
    this.#x.ring(task);
  }

  ringAlways(task: number): void {
    this.#x.ringAlways(task);
  }

  bellArm(task: number): number {
    return this.#x.bellArm(task);
  }

  bellDisarm(task: number): void {
    this.#x.bellDisarm(task);
  }

  bellWait(task: number, seen: number, milliseconds: number): number {
    return this.#x.bellWait(task, seen, milliseconds);
  }

  spinEnter(job: number, task: number, tasks: number): number {
    return this.#x.spinEnter(job, task, tasks);
  }

  spinLeave(job: number, task: number): void {
    this.#x.spinLeave(job, task);
  }

  heapInit(job: number): void {
    this.#x.heapInit(job);
  }

  heapAllocate(job: number, pages: number, owner: number): number {
    return this.#x.heapAllocate(job, pages, owner) >>> 0;
  }

  heapFree(job: number, extent: number): void {
    this.#x.heapFree(job, extent);
  }

  heapFreePages(job: number): number {
    return this.#x.heapFreePages(job);
  }

  copyBytes(to: number, from: number, bytes: number): void {
    this.#x.copyBytes(to, from, bytes);
  }

  laneInit(job: number, lane: number, origin: number, target: number, capacity: number, recordMax: number, start: number): void {
    this.#x.laneInit(job, lane, origin, target, capacity, recordMax, start);
  }

  laneOpen(job: number, origin: number, target: number, capacity: number, recordMax: number): number {
    return this.#x.laneOpen(job, origin, target, capacity, recordMax) >>> 0;
  }

  laneRoom(lane: number): number {
    return this.#x.laneRoom(lane);
  }

  laneSendWords(lane: number, bytes: number, meta: number, a: number, b: number, c: number, d: number): number {
    return this.#x.laneSendWords(lane, bytes, meta, a, b, c, d);
  }

  laneReserve(lane: number, bytes: number): number {
    return this.#x.laneReserve(lane, bytes) >>> 0;
  }

  laneCommit(lane: number, kind: number, bytes: number, meta: number): void {
    this.#x.laneCommit(lane, kind, bytes, meta);
  }

  laneAbort(lane: number): void {
    this.#x.laneAbort(lane);
  }

  laneWantRoom(lane: number, wanted: number): void {
    this.#x.laneWantRoom(lane, wanted);
  }

  laneReplace(job: number, lane: number, capacity: number, recordMax: number): number {
    return this.#x.laneReplace(job, lane, capacity, recordMax) >>> 0;
  }

  laneReclaim(job: number, lane: number): void {
    this.#x.laneReclaim(job, lane);
  }

  laneRelease(lane: number): void {
    this.#x.laneRelease(lane);
  }

  laneOf(context: number, origin: number): number {
    return this.#x.laneOf(context, origin) >>> 0;
  }

  advance(context: number, rounds: number): number {
    return this.#x.advance(context, rounds);
  }

  release(context: number): void {
    this.#x.release(context);
  }

  peek(context: number): number {
    return this.#x.peek(context);
  }

  lanePeek(lane: number): number {
    return this.#x.lanePeek(lane);
  }

  lanePause(lane: number, body: number): void {
    this.#x.lanePause(lane, body);
  }

  laneResume(context: number, origin: number): void {
    this.#x.laneResume(context, origin);
  }

  laneSwitch(job: number, context: number, origin: number, fresh: number): void {
    this.#x.laneSwitch(job, context, origin, fresh);
  }
}

/** The kernels in wasm, over a job's memory. */
export function wasmKernel(memory: WebAssembly.Memory, module: WebAssembly.Module = wasmModule()): Kernel {
  const { exports } = instantiateSync<Exports>(module, { env: { memory } });
  if (exports.layoutHash() >>> 0 !== LAYOUT_HASH >>> 0) {
    throw new Error(`pamir.wasm was built from other sources: layout ${exports.layoutHash() >>> 0}, not ${LAYOUT_HASH}`);
  }
  return new WasmKernel(exports);
}
