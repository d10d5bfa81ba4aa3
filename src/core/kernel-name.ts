/** The kernels of a task: WebAssembly, or the twin in TypeScript. */
export type KernelName = "wasm" | "ts";
