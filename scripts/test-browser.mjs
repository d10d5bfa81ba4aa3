// npm run test:browser: the tests of test/browser and test/pages in a headless Chromium; where there is none, it says so.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findChromium } from "./find-chromium.mjs";

const isRequired = process.argv.includes("--required");
const path = await findChromium();
if (path === undefined) {
  console.log("not run: the tests in a browser; no Chromium is on the PATH, nor named by CHROME_PATH");
  process.exit(isRequired ? 1 : 0);
}
const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
let failed = false;
for (const config of ["vitest.browser.config.ts", "vitest.pages.config.ts"]) {
  const { status } = spawnSync(process.execPath, [vitest, "run", "--config", config], {
    stdio: "inherit",
    env: { ...process.env, CHROME_PATH: path, ...(isRequired ? { PAMIR_REQUIRE_ALL: "1" } : {}) },
  });
  failed ||= status !== 0;
}
process.exit(failed ? 1 : 0);
