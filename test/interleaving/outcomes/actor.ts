// One of the two workers of a litmus test.
import { parentPort, workerData } from "node:worker_threads";
import type { KernelName } from "../../../src/core/kernel-name.js";
import { memoryOf } from "../../../src/kernel/kernel.js";
import { twinPacketKernel } from "../../../src/kernel/twin/index.js";
import { wasmKernel } from "../../../src/kernel/wasm.js";
import { formatMemory } from "../../../src/memory/format.js";
import { Rig } from "../../support/kernels.js";
import { map } from "../control.js";
import { LITMUS } from "./litmus.js";

export interface ActorOrders {
  readonly litmus: string;
  readonly kernel: KernelName;
  readonly memory: WebAssembly.Memory;
  /** 0, 32: round at which actor 0, 1 stands; 64, 96: round that it has done; 65, 97: what came of its act. */
  readonly meeting: Int32Array<SharedArrayBuffer>;
  readonly me: 0 | 1;
  readonly rounds: number;
}

const { litmus: name, kernel: kernelName, memory, meeting, me, rounds } = workerData as ActorOrders;
const litmus = LITMUS.find((one) => one.name === name);
if (litmus === undefined) throw new Error(`no litmus test ${name}`);
const views = memoryOf(memory.buffer as unknown as SharedArrayBuffer);
const kernel = kernelName === "wasm" ? wasmKernel(memory) : twinPacketKernel(views);
const rig = new Rig(kernel, kernel, views, map);
const other = 1 - me;
const counts: Record<string, number> = {};

if (me === 0) {
  formatMemory(map, views, 2);
  litmus.setup(rig);
}
let jitter = 1 + me;
for (let round = 1; round <= rounds; round++) {
  if (me === 0) litmus.reset(rig, round);
  Atomics.store(meeting, 32 * me, round);
  while (Atomics.load(meeting, 32 * other) < round);
  // Up to some 100 ns apart, either way.
  jitter = (Math.imul(jitter, 1103515245) + 12345) | 0;
  for (let pause = (jitter >>> 16) & 15; pause > 0; pause--) Atomics.load(meeting, 32 * me);
  const result = litmus.acts[me](rig, round);
  meeting[65 + 32 * me] = result;
  Atomics.store(meeting, 64 + 32 * me, round);
  if (me === 1) continue;
  while (Atomics.load(meeting, 96) < round);
  const outcome = litmus.outcome(rig, [result, meeting[97] as number], round);
  counts[outcome] = (counts[outcome] ?? 0) + 1;
}
if (me === 0) parentPort?.postMessage(counts);
