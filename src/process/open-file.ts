// Opens files by way of /proc, in a way in which the end of a worker closes them.
import { nodeModule } from "../support/host.js";
import type { Ffi } from "./ffi.js";

/** A file that this thread has opened. */
export interface OpenFile {
  readonly descriptor: number;
  readonly close: () => void;
}

/** Opens a file. @param flags as for fs.openSync() @returns undefined: it is not there, or the thread has no descriptor left */
export function openFile(ffi: Ffi, path: string, flags: number | string): OpenFile | undefined {
  const { closeSync, openSync } = nodeModule("fs") as typeof import("node:fs");
  try {
    // Node closes it at the end of a worker, also of one that is terminated.
    const descriptor = openSync(path, flags);
    return { descriptor, close: () => closeSync(descriptor) };
  } catch (error) {
    if ((error as { code?: string }).code !== "ERR_ACCESS_DENIED") return undefined;
  }
  // node --permission without --allow-fs-write.
  const descriptor = ffi.open(path);
  return descriptor < 0 ? undefined : { descriptor, close: () => ffi.close(descriptor) };
}
