// The tests of test/browser and test/pages in a headless Chromium: `node scripts/test-browser.mjs normal|deep [browser|pages]`.
// Where there is none, it says so, and fails if PAMIR_REQUIRE_BROWSERS=1.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findChromium } from "./find-chromium.mjs";
import { chooseSeed } from "./seed.mjs";

const [, , effort = "normal", only] = process.argv;
const isRequired = process.env.PAMIR_REQUIRE_BROWSERS === "1";
const path = await findChromium();
if (path === undefined) {
  console.log("not run: the tests in a browser, for no Chromium is on the PATH, nor named by CHROME_PATH");
  process.exit(isRequired ? 1 : 0);
}
const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
let failed = false;
for (const suite of only === undefined ? ["browser", "pages"] : [only]) {
  const { status } = spawnSync(process.execPath, [vitest, "run", "--config", `vitest.${suite}.config.ts`], {
    stdio: "inherit",
    env: {
      ...process.env,
      CHROME_PATH: path,
      PAMIR_EFFORT: effort,
      PAMIR_SEED: chooseSeed(),
      ...(isRequired ? { PAMIR_REQUIRE_ALL: "1" } : {}),
    },
  });
  failed ||= status !== 0;
}
process.exit(failed ? 1 : 0);
