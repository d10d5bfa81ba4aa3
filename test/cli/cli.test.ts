// The command line as its users see it: a child process, its output, its exit code.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));

function pamir(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [cli, ...args], { encoding: "utf8" });
}

describe("help and version", () => {
  it("pamir --help lists the commands", () => {
    const { status, stdout, stderr } = pamir("--help");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    for (const command of ["run", "perf", "info"]) expect(stdout).toMatch(new RegExp(`^  ${command} `, "m"));
  });

  it("pamir perf --help lists tests and systems", () => {
    const { status, stdout } = pamir("perf", "--help");
    expect(status).toBe(0);
    for (const name of ["am_lat", "am_rate", "am_bw", "am_fan", "wake_lat", "idle", "pamir-wasm", "openmpi", "ucx"]) {
      expect(stdout).toMatch(new RegExp(`^  ${name} `, "m"));
    }
  });

  it("pamir info --help", () => {
    expect(pamir("info", "--help")).toMatchObject({ status: 0, stderr: "" });
  });

  it("pamir --version", () => {
    expect(pamir("--version")).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\S*\n$/) });
  });
});

describe("wrong input: one line that names it, exit code 2", () => {
  it.each([
    { args: [], says: "a command is missing" },
    { args: ["bogus"], says: '"bogus"' },
    { args: ["--bogus"], says: '"--bogus"' },
    { args: ["toString"], says: '"toString"' },
    { args: ["perf", "--bogus"], says: "--bogus" },
    { args: ["perf", "stray"], says: "stray" },
    { args: ["perf", "--test", "am_late"], says: '--test is "am_late"' },
    { args: ["perf", "--test"], says: "--test" },
    { args: ["perf", "--system", "smoke"], says: '--system is "smoke"' },
    { args: ["perf", "--bytes", "0"], says: '--bytes is "0"' },
    { args: ["perf", "--bytes", "1e3"], says: '--bytes is "1e3"' },
    { args: ["perf", "--bytes", "16777217"], says: '--bytes is "16777217"' },
    { args: ["perf", "--bytes=-8"], says: '--bytes is "-8"' },
    { args: ["perf", "--runs", "many"], says: '--runs is "many"' },
    { args: ["perf", "--runs", ""], says: '--runs is ""' },
    { args: ["perf", "--test", "idle", "--system", "ring"], says: "ring has no idle" },
    { args: ["info", "--bogus"], says: "--bogus" },
  ])("pamir $args", ({ args, says }) => {
    const { status, stdout, stderr } = pamir(...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(says);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

describe("pamir info", () => {
  it("--json is one object", () => {
    const { status, stdout } = pamir("info", "--json");
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      version: expect.any(String),
      node: process.version,
      kernel: "wasm",
      sharedMemory: true,
      isolated: true,
      workerThreads: true,
      limits: { dispatchId: 4095 },
      sizes: { wasm: expect.any(Number) },
    });
  });

  it("text names the same", () => {
    const { status, stdout } = pamir("info");
    expect(status).toBe(0);
    expect(stdout).toContain(process.version);
    expect(stdout).toContain("limits");
  });
});
