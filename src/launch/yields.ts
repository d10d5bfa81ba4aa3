// How a task's thread gives its core to another one, in a job with more tasks than cores. It is loaded only there.
import { byKoffi, byNode, NODE_FFI } from "../process/ffi.js";
import { nodeModule } from "../support/host.js";
import { findPackage } from "../support/packages.js";

/** A function that gives the core away, by sched_yield() of POSIX; undefined: neither koffi nor node:ffi is there. */
export function findYield(): (() => void) | undefined {
  try {
    const path = findPackage("koffi");
    if (path === undefined && !nodeModule("module")?.isBuiltin(NODE_FFI)) return undefined;
    const library = path === undefined ? byNode() : byKoffi(path);
    return library.func("sched_yield", "int", []);
  } catch {
    return undefined;
  }
}
