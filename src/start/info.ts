// pamir.info(): what this pamir is, and what this host gives it.

import * as L from "../../assembly/layout.js";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { VERSION, WASM_BYTES } from "../generated/version.js";
import { hasWaitAsync } from "../kernel/atomics.js";
import { hasSimd, wasmAllowed } from "../kernel/open.js";
import { MEMORY_BYTES_MAX, memoryMap } from "../memory/map.js";
import { socketFolder } from "../observe/visible.js";
import { isIsolated, isNode, processorName } from "../support/host.js";
import { hardwareThreads } from "../support/node/cores.js";

/**
 * The way in which tasks run on this host. `shared`: on threads that share memory. `messages`: on threads that use
 * `postMessage`, without blocking waits. `alone`: one task, on this thread. The calls are the same.
 */
export type HostMode = "shared" | "messages" | "alone";

/** The result of `info()`. */
export interface Info {
  /** Version of this package. */
  readonly version: string;
  /** Fingerprint of the kernels and of the memory's layout. All tasks of a job must have the same. */
  readonly layout: number;
  /** The way in which tasks run on this host. */
  readonly mode: HostMode;
  /** Why the mode or the kernels are not the best, and how to change that; empty if they are the best. */
  readonly why: string;
  /** Default kernels of a job on this host. */
  readonly kernel: "wasm" | "ts";
  /** Whether the host has SharedArrayBuffer. */
  readonly sharedMemory: boolean;
  /** `crossOriginIsolated` of a page; true on hosts without pages. */
  readonly isolated: boolean;
  /** Whether WebAssembly has SIMD here, which the wasm kernels use. */
  readonly simd: boolean;
  /** Whether tasks are threads of `worker_threads`; otherwise they are Web Workers. */
  readonly workerThreads: boolean;
  /** Whether the host has Atomics.waitAsync. Without it, `progress()` sleeps by other means. */
  readonly waitAsync: boolean;
  /** Number of hardware threads of the machine, as far as the host exposes it. */
  readonly hardwareThreads: number;
  /** Name of the processor; empty if the host does not expose it. */
  readonly processor: string;
  /**
   * How processes talk: the processes of the last `launch` with `processes`, or the processes of this host that `attach` found.
   * They share a memory, or a link joins them, for the reason in `why`. Undefined before, and with one process.
   */
  readonly processes: "memory" | "link" | undefined;
  /** Folder of the sockets by which `pamir top` finds jobs that opted in; undefined outside of Node. */
  readonly sockets: string | undefined;
  /** Limits of a job: counts, or bytes if the name says so. */
  readonly limits: Readonly<Record<string, number>>;
  /**
   * Sizes in bytes: of the kernels, and in a job with default limits of a context with its injection FIFOs (which grows with
   * the number of endpoints), of a lane, and of the two lanes of a pair.
   */
  readonly sizes: Readonly<Record<string, number>>;
}

const HEADERS = "Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp";

/** Reports a scope that loads no modules later: not even one task runs there. */
export function bareScope(): string | undefined {
  if ("ServiceWorkerGlobalScope" in globalThis) return "a service worker runs no tasks: its page may launch them";
  if ("AudioWorkletGlobalScope" in globalThis) return "an AudioWorklet runs no tasks: its page may launch them";
  return undefined;
}

function hasSharedMemory(): boolean {
  return typeof SharedArrayBuffer !== "undefined";
}

/** Whether this thread may start others that share its memory, and why not. */
export function hostModeOf(): { readonly mode: HostMode; readonly why: string } {
  const { isSecureContext = true } = globalThis as { isSecureContext?: boolean };
  if (!isNode() && typeof Worker === "undefined") {
    return { mode: "alone", why: bareScope() ?? "this host has no workers" };
  }
  if (isIsolated()) {
    // WebKitGTK counts a page as isolated, and clones no shared memory.
    if (!hasSharedMemory()) return { mode: "messages", why: "this host has no SharedArrayBuffer" };
    return { mode: "shared", why: "" };
  }
  const why = isSecureContext
    ? `this page is not cross-origin isolated, so its threads can't share memory: serve it with ${HEADERS}`
    : "this page came neither by https nor from localhost, and so can't be cross-origin isolated";
  return { mode: "messages", why };
}

/** Why the kernels are not wasm. */
function whyTwin(): string {
  if (typeof WebAssembly === "undefined") return "this host has no WebAssembly";
  return wasmAllowed()
    ? ""
    : "a Content-Security-Policy forbids WebAssembly: allow it by script-src 'wasm-unsafe-eval'";
}

let processes: Info["processes"];
let whyLink = "";

/** Notes how the processes of a job talk. @param why they share no memory; empty if they do */
export function noteProcesses(why: string): void {
  processes = why === "" ? "memory" : "link";
  whyLink = why;
}

/** Describes this copy of pamir, and the abilities of this host; sizes and limits in bytes unless their name says otherwise. */
export function info(): Info {
  const map = memoryMap({ tasks: 2, contexts: 1, laneBytes: L.LANE_BYTES_DEFAULT, heapBytes: 0 });
  const { mode, why } = hostModeOf();
  return {
    version: VERSION,
    layout: LAYOUT_HASH,
    mode,
    why: [why, whyTwin(), whyLink].filter((reason) => reason !== "").join("; "),
    kernel: wasmAllowed() ? "wasm" : "ts",
    sharedMemory: hasSharedMemory(),
    isolated: isIsolated(),
    simd: hasSimd(),
    workerThreads: isNode(),
    waitAsync: hasWaitAsync(),
    hardwareThreads: hardwareThreads(),
    processor: processorName(),
    processes,
    sockets: socketFolder(),
    limits: {
      tasks: L.TASK_COUNT_MAX,
      contexts: L.CONTEXT_COUNT_MAX,
      endpoints: L.ENDPOINT_COUNT_MAX,
      dispatchId: L.DISPATCH_ID_MAX,
      headerBytes: L.HEADER_BYTES_MAX,
      sendImmediateBytes: L.SEND_IMMEDIATE_MAX,
      recvImmediateBytes: L.RECV_IMMEDIATE_MAX,
      messageBytes: L.MESSAGE_BYTES_MAX,
      regions: L.REGION_COUNT_MAX,
      injectionFifos: L.FIFO_COUNT_MAX,
      injectionSlots: L.SLOT_COUNT_MAX,
      memoryBytes: MEMORY_BYTES_MAX,
    },
    sizes: {
      wasm: WASM_BYTES,
      context: map.contextSize + map.fifos * map.injectionSize,
      lane: 6 * 4096,
      pair: 2 * 6 * 4096,
    },
  };
}
