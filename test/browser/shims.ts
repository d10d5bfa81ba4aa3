// Suites that are at home in Vitest, in a browser without it: what they import of Vitest and of Node is of our own.
import { fileURLToPath } from "node:url";
import { chooseSeed } from "../../scripts/seed.mjs";

export { ISOLATION } from "../../scripts/serve.mjs";

const SHIMS: Record<string, string> = {
  vitest: "vitest.ts",
  "node:fs": "node.ts",
  "node:worker_threads": "node.ts",
};

/** A plugin of Vite. @param importers files whose imports are replaced */
export function shims(importers: RegExp) {
  return {
    name: "shims",
    enforce: "pre" as const,
    resolveId(source: string, importer: string | undefined) {
      const shim = importers.test(importer ?? "") ? SHIMS[source] : undefined;
      return shim && fileURLToPath(new URL(`isolated/conformance/${shim}`, import.meta.url));
    },
  };
}

/**
 * A plugin of Vite. Vitest has each dynamic import go through an object of its pages, which the workers of a job lack: the
 * library brings one along.
 */
export const IMPORTS_IN_WORKERS = {
  name: "imports-in-workers",
  enforce: "post" as const,
  transform(code: string, id: string) {
    if (!/\/dist\/[\w-]+\.js(\?|$)/.test(id)) return undefined;
    return `globalThis.__vitest_browser_runner__ ??= { wrapDynamicImport: (load) => load() };\n${code}`;
  },
};

/** The package that was built, as an app has it. */
export const ALIAS = {
  "pamir/mpi": fileURLToPath(new URL("../../dist/mpi.js", import.meta.url)),
  "pamir/pool": fileURLToPath(new URL("../../dist/pool.js", import.meta.url)),
  pamir: fileURLToPath(new URL("../../dist/index.js", import.meta.url)),
};

/** The effort and the seed of the run, as pages and their workers have them: globals.ts. */
export const ENVIRONMENT = {
  "import.meta.env.PAMIR_EFFORT": JSON.stringify(process.env.PAMIR_EFFORT ?? "normal"),
  "import.meta.env.PAMIR_SEED": JSON.stringify(chooseSeed()),
};

/** What Vite is to prepare before the first page is loaded. */
export const DEPENDENCIES = ["buffer", "chai", "fast-check", "@vitest/expect"];
