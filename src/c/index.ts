// The entry `pamir/c`: programs in C, C++ and Rust, compiled to WebAssembly, as tasks of a job.
export {
  type PamirImports,
  type PamirImportsOptions,
  type ProgramBytes,
  pamirImports,
  programRegion,
} from "./guest.js";
export {
  type LaunchProgramOptions,
  launchProgram,
  type ProgramJobEnd,
  type ProgramLine,
  type RankEnd,
} from "./launch-program.js";
export { type MemoryFiles, memoryFiles } from "./memory-program-files.js";
export { checkProgram, type ProgramEnd, type ProgramOptions, runProgram } from "./program.js";
export type { ProgramSource, ResponseLike } from "./program-bytes.js";
export { type ProgramLimits, programLimits } from "./program-limits.js";
export { programTask } from "./program-task.js";
export type { Folder, Preopen, ProgramFile } from "./wasi/files.js";
export { hostFolder } from "./wasi/host-files.js";
export type { MemoryTree } from "./wasi/memory-files.js";
