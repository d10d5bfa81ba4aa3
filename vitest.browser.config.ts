import { fileURLToPath } from "node:url";
import { playwright } from "@vitest/browser-playwright";
import { defineConfig } from "vitest/config";
import { CHROMIUM_FLAGS, findChromium } from "./scripts/find-chromium.mjs";

const executablePath = await findChromium();
const report = process.env.PAMIR_BROWSER_JSON;

/** What makes a page cross-origin isolated: without it threads can't share memory. */
const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

/** Scripts, but no WebAssembly: that would be 'wasm-unsafe-eval'. */
const NO_WASM = { "Content-Security-Policy": "script-src 'self' 'unsafe-inline' blob:" };

/** The kernels' conformance suites run in workers there: what they import of Vitest and of Node is of our own. */
const conformance = {
  name: "conformance-in-workers",
  enforce: "pre" as const,
  resolveId(source: string, importer: string | undefined) {
    if (!/\/test\/(conformance\/(kernel|rma)|support\/)/.test(importer ?? "")) return undefined;
    const shims: Record<string, string> = {
      vitest: "vitest.ts",
      "node:fs": "node.ts",
      "node:worker_threads": "node.ts",
    };
    const shim = shims[source];
    return shim && fileURLToPath(new URL(`test/browser/isolated/conformance/${shim}`, import.meta.url));
  },
};

/** The tests of one folder, on pages with these headers. */
function project(name: string, headers: Record<string, string>) {
  return {
    plugins: [conformance],
    worker: { format: "es" as const, plugins: () => [conformance] },
    optimizeDeps: { include: ["buffer", "chai", "fast-check", "@vitest/expect"] },
    server: { headers },
    // As an app has it: the package that was built, not its sources.
    resolve: { alias: { pamir: fileURLToPath(new URL("dist/index.js", import.meta.url)) } },
    test: {
      name,
      include: [`test/browser/${name}/*.test.ts`],
      testTimeout: 30_000,
      browser: {
        enabled: true,
        headless: true,
        screenshotFailures: false,
        provider: playwright({
          launchOptions: { args: CHROMIUM_FLAGS, ...(executablePath === undefined ? {} : { executablePath }) },
        }),
        instances: [{ browser: "chromium" as const }],
      },
    },
  };
}

export default defineConfig({
  test: {
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    projects: [project("isolated", ISOLATION), project("alone", {}), project("no-wasm", { ...ISOLATION, ...NO_WASM })],
  },
});
