// How a task's thread gives its core to another one, in a job with more tasks than cores. The module is loaded only in such a
// job.
import { byKoffi } from "../../process/ffi.js";
import { findPackage } from "../../support/node/packages.js";

/**
 * A function that gives the core away, by sched_yield() of POSIX; undefined: koffi is not there. Not by node:ffi, of which Node
 * warns that it is experimental.
 */
export function findYield(): (() => void) | undefined {
  const path = findPackage("koffi");
  if (path === undefined) return undefined;
  try {
    return byKoffi(path).func("sched_yield", "int", []);
  } catch {
    // Windows has no such function, and a Node with --permission may refuse koffi.
    return undefined;
  }
}
