// What the suites use of Node, on a page or in a Web Worker. Imported before them.
import { Buffer } from "buffer";

declare global {
  interface ImportMeta {
    readonly env: Readonly<Record<"PAMIR_EFFORT" | "PAMIR_SEED", string>>;
  }
}

// Vite replaces these, on pages and in their workers.
const { PAMIR_EFFORT, PAMIR_SEED } = {
  PAMIR_EFFORT: import.meta.env.PAMIR_EFFORT,
  PAMIR_SEED: import.meta.env.PAMIR_SEED,
};
const { process = { env: {} } } = globalThis as { process?: { env: object } };
Object.assign(globalThis, { Buffer, process });
Object.assign(process.env, { PAMIR_EFFORT, PAMIR_SEED });
