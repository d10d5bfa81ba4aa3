/** Which kernels a task runs: compiled to WebAssembly, or their twin in TypeScript. */
export type KernelName = "wasm" | "ts";
