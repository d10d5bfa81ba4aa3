// As perf.test.ts: what takes gigabytes, and half a minute.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Most memory that the command has had of the system, in KiB. */
function mostMemory(runs: number): number {
  const script = `
    import { isMainThread } from "node:worker_threads";
    if (isMainThread) process.on("exit", () => console.error(process.resourceUsage().maxRSS));`;
  const args = ["--quick", "--test", "rndv_bw", "--bytes", String(2 ** 27), "--system", "pamir-wasm"];
  const command = ["dist/cli.js", "perf", ...args, "--system", "memcpy", "--runs", String(runs)];
  const first = ["--import", `data:text/javascript,${encodeURIComponent(script)}`];
  const { stderr } = spawnSync(process.execPath, [...first, ...command], { encoding: "utf8", cwd: root });
  return Number(stderr);
}

it("has the memory of one run at a time: of 1 GiB each, 24 GiB were not enough", () => {
  const one = mostMemory(1);
  expect(one).toBeGreaterThan(2 ** 18);
  expect(mostMemory(6)).toBeLessThan(1.5 * one);
});
