// npm run test:browser: the tests of test/browser in a headless Chromium; where there is none, it says so.
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
const { status } = spawnSync(process.execPath, [vitest, "run", "--config", "vitest.browser.config.ts"], {
  stdio: "inherit",
  env: { ...process.env, CHROME_PATH: path },
});
process.exit(status ?? 1);
