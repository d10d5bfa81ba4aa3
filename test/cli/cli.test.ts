// The command line as its users see it: a child process, its output, its exit code.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));

/** What no process of a test inherits: this test may itself run under a launcher. */
const cleanEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(PAMIR|PMI|OMPI|SLURM|RANK|WORLD|JOB_COMPLETION)/.test(name)),
);

function pamir(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [cli, ...args], { encoding: "utf8" });
}

/** `pamir info` with further variables and options of Node. */
function infoWith(env: object, options: readonly string[] = []) {
  const args = [...options, cli, "info"];
  return spawnSync(process.execPath, args, { encoding: "utf8", env: { ...cleanEnv, ...env } }).stdout;
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

  it.each([
    [{}, "none has started this process"],
    [{ PMI_FD: "7", PMI_RANK: "1", PMI_SIZE: "4" }, "pmi: rank 1 of 4, by PMI, descriptor 7"],
    [{ PMI_PORT: "a:1234", PMI_ID: "2" }, "pmi: rank 2, by PMI, a:1234"],
    [{ PAMIR_RANK: "0", PAMIR_SIZE: "2", PAMIR_RENDEZVOUS: "[::1]:7" }, "pamir: rank 0 of 2, by rendezvous, [::1]:7"],
    [{ JOB_COMPLETION_INDEX: "0", PAMIR_SIZE: "1" }, "kubernetes: rank 0 of 1"],
    [
      { PAMIR_RANK: "x", PAMIR_SIZE: "2" },
      'its variables make no sense: the variable PAMIR_RANK is "x", not an integer from 0 to 65535',
    ],
  ])("the launcher that %j stands for", (env, text) => {
    const lines = infoWith(env).split("\n");
    expect(lines.find((line) => line.startsWith("  launcher "))?.replace(/^ +launcher +/, "")).toBe(text);
  });

  it.skipIf(process.platform !== "linux")("whether processes share memory, and why not", () => {
    expect(infoWith({})).toMatch(/^ {2}processes +share memory$/m);
    const { stdout, stderr } = spawnSync(process.execPath, ["--no-addons", cli, "info"], { encoding: "utf8" });
    expect(stdout).toMatch(/^ {2}processes +share no memory: .*koffi/m);
    // The warning of launch() would say it again.
    expect(stderr).toBe("");
  });
});
