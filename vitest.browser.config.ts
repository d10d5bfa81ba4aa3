import { playwright } from "@vitest/browser-playwright";
import { defineConfig } from "vitest/config";
import { CHROMIUM_FLAGS, findChromium } from "./scripts/find-chromium.mjs";
import { ALIAS, DEPENDENCIES, ENVIRONMENT, IMPORTS_IN_WORKERS, ISOLATION, shims } from "./test/browser/shims.js";
import { leftOut, reportersFor } from "./test/support/run-options.js";

const executablePath = await findChromium();
const report = process.env.PAMIR_BROWSER_JSON;

/** Scripts, but no WebAssembly: that would be 'wasm-unsafe-eval'. */
const NO_WASM = { "Content-Security-Policy": "script-src 'self' 'unsafe-inline' blob:" };

/** The kernels' conformance suites run in workers there, where Vitest is not. */
const conformance = shims(/\/test\/(conformance\/(kernel|rma|chain)|support\/)/);

/** The tests of one folder, on pages with these headers. */
function project(name: string, headers: Record<string, string>) {
  return {
    plugins: [conformance, IMPORTS_IN_WORKERS],
    worker: { format: "es" as const, plugins: () => [conformance, IMPORTS_IN_WORKERS] },
    optimizeDeps: { include: DEPENDENCIES },
    server: { headers },
    // A copy: Vitest takes out of it what it has read.
    define: { ...ENVIRONMENT },
    resolve: { alias: ALIAS },
    test: {
      name,
      include: [`test/browser/${name}/*.test.ts`],
      exclude: [...leftOut],
      testTimeout: 120_000,
      hookTimeout: 120_000,
      browser: {
        enabled: true,
        headless: true,
        connectTimeout: 240_000,
        screenshotFailures: false,
        provider: playwright({
          launchOptions: {
            args: CHROMIUM_FLAGS,
            timeout: 120_000,
            ...(executablePath === undefined ? {} : { executablePath }),
          },
        }),
        instances: [{ browser: "chromium" as const }],
      },
    },
  };
}

export default defineConfig({
  test: {
    // A shard may have none of them.
    passWithNoTests: true,
    reporters: reportersFor(report),
    projects: [
      project("isolated", ISOLATION),
      project("not-isolated", {}),
      project("no-wasm", { ...ISOLATION, ...NO_WASM }),
    ],
  },
});
