// Binds the compiled wasm module to a job's memory.
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { type Futex, kernelImports, type PacketKernel } from "./kernel.js";

/** The module's exports: the functions of PacketKernel, with u32 results as signed numbers. */
type Exports = Omit<PacketKernel, "name"> & { layoutHash(): number };

/**
 * The functions on hot paths: methods over one private field each. V8 calls such a method in 7.7 ns; a function that is an
 * own property of the kernel took 12–13.6 ns (Node 20).
 */
class HotKernel {
  readonly name = "wasm";
  readonly #loadWord: Exports["loadWord"];
  readonly #storeWord: Exports["storeWord"];
  readonly #laneSendWords: Exports["laneSendWords"];
  readonly #laneReserve: Exports["laneReserve"];
  readonly #laneCommit: Exports["laneCommit"];
  readonly #advance: Exports["advance"];
  readonly #release: Exports["release"];
  readonly #submit: Exports["submit"];
  readonly #moveNow: Exports["moveNow"];
  readonly #changeNow: Exports["changeNow"];
  readonly #completionTake: Exports["completionTake"];

  constructor(exports: Exports) {
    this.#loadWord = exports.loadWord;
    this.#storeWord = exports.storeWord;
    this.#laneSendWords = exports.laneSendWords;
    this.#laneReserve = exports.laneReserve;
    this.#laneCommit = exports.laneCommit;
    this.#advance = exports.advance;
    this.#release = exports.release;
    this.#submit = exports.submit;
    this.#moveNow = exports.moveNow;
    this.#changeNow = exports.changeNow;
    this.#completionTake = exports.completionTake;
  }

  loadWord(pointer: number): number {
    return this.#loadWord(pointer);
  }

  storeWord(pointer: number, value: number): void {
    this.#storeWord(pointer, value);
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

  advance(context: number, rounds: number): number {
    return this.#advance(context, rounds);
  }

  release(context: number): void {
    this.#release(context);
  }

  submit(job: number, fifo: number, hasCallback: boolean): number {
    return this.#submit(job, fifo, hasCallback);
  }

  moveNow(
    job: number,
    index: number,
    generation: number,
    offset: number,
    local: number,
    bytes: number,
    isPut: boolean,
  ): number {
    return this.#moveNow(job, index, generation, offset, local, bytes, isPut);
  }

  changeNow(
    job: number,
    index: number,
    generation: number,
    offset: number,
    operation: number,
    value: number,
    local: number,
  ): number {
    return this.#changeNow(job, index, generation, offset, operation, value, local);
  }

  completionTake(fifo: number): number {
    return this.#completionTake(fifo) >>> 0;
  }
}

/** The other functions with a u32 result, which wasm returns as a signed number. */
const UNSIGNED = new Set([
  "heapAllocate",
  "regionAllocate",
  "regionOpen",
  "placeOf",
  "laneOpen",
  "laneReplace",
  "laneOf",
  "inject",
  "rgetOpen",
  "queueTake",
  "queueNext",
]);

/**
 * Adds the functions off the hot paths: the wasm functions themselves, on a prototype between the kernel and its methods. As
 * own properties, more than some 40 make V8 turn the object into a dictionary, and each method call took 7 ns more.
 */
function addOthers(kernel: HotKernel, exports: Exports): PacketKernel {
  const all: Record<string, unknown> = Object.create(HotKernel.prototype);
  for (const [name, run] of Object.entries(exports) as [string, (...given: number[]) => number][]) {
    if (name in all || name === "layoutHash") continue;
    // These have at most five parameters, and wasm ignores extra ones. A rest parameter would make an array.
    const unsigned = (a: number, b: number, c: number, d: number, e: number) => run(a, b, c, d, e) >>> 0;
    all[name] = UNSIGNED.has(name) ? unsigned : run;
  }
  return Object.setPrototypeOf(kernel, all) as PacketKernel;
}

/** The kernels in wasm, over a job's memory. @param module of the kernels: wasmModule() */
export function bindKernel(memory: WebAssembly.Memory, module: WebAssembly.Module, futex?: Futex): PacketKernel {
  const exports = new WebAssembly.Instance(module, kernelImports(memory, futex)).exports as unknown as Exports;
  if (exports.layoutHash() >>> 0 !== LAYOUT_HASH >>> 0) {
    throw new Error(
      `pamir.wasm was built from other sources: layout ${exports.layoutHash() >>> 0}, not ${LAYOUT_HASH}`,
    );
  }
  return addOthers(new HotKernel(exports), exports);
}
