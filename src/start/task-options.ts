// Options of tasks: their kernels, and the data for their workers.
import { checkObject } from "../core/check.js";
import { PamiError, show } from "../core/error.js";
import type { KernelName } from "../core/kernel-name.js";
import { checkedKernel } from "../kernel/open.js";
import { nodeModule } from "../support/host.js";
import type { LaunchOptions } from "./launch-options.js";

/** The kernels of each task. @throws PAMIR_INVAL, PAMIR_NO_WASM */
export function checkKernels(kernel: LaunchOptions["kernel"], tasks: number): KernelName[] {
  const isName = kernel === undefined || typeof kernel === "string";
  if (!isName && !Array.isArray(kernel)) {
    throw new PamiError("PAMIR_INVAL", `kernel is ${show(kernel)}, not "wasm" or "ts", nor an array of these`);
  }
  const kernels = !isName ? [...kernel] : new Array<KernelName>(tasks).fill(kernel ?? checkedKernel(kernel));
  if (kernels.length !== tasks) {
    throw new PamiError("PAMIR_INVAL", `kernel has ${kernels.length} entries for ${tasks} tasks`);
  }
  for (const name of kernels) {
    if (name !== "wasm" && name !== "ts") {
      throw new PamiError("PAMIR_INVAL", `kernel is ${show(name)}, not "wasm" or "ts"`);
    }
    checkedKernel(name);
  }
  return kernels;
}

/** Checks that a worker can have a copy. @throws PAMIR_INVAL */
export function checkArgs(args: unknown): void {
  try {
    structuredClone(args);
  } catch (cause) {
    throw new PamiError("PAMIR_INVAL", `args can't be sent to a worker: ${(cause as Error).message}`, { cause });
  }
}

/** @throws PAMIR_INVAL */
export function checkWorkerOptions(workerOptions: Record<string, unknown>): void {
  checkObject("workerOptions", workerOptions);
  const { workerData, eval: code } = workerOptions;
  if (workerData !== undefined && (typeof workerData !== "object" || workerData === null)) {
    throw new PamiError("PAMIR_INVAL", `workerOptions.workerData is ${show(workerData)}: an object, or use args`);
  }
  if (code) throw new PamiError("PAMIR_INVAL", "workerOptions.eval: the entry is the URL of a module");
}

/** Checks that another process can have copies. @throws PAMIR_INVAL */
export function checkCopied(args: unknown, workerOptions: unknown): void {
  try {
    nodeModule("v8")?.serialize([args, workerOptions]);
  } catch (cause) {
    const text = `args or workerOptions can't be sent to a process: ${(cause as Error).message}`;
    throw new PamiError("PAMIR_INVAL", text, { cause });
  }
}
