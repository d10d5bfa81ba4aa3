// The command line as its users see it: a child process, its output, its exit code.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, it } from "vitest";

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
    { args: ["perf", "--tasks"], says: "--tasks" },
    { args: ["perf", "--tasks", "0"], says: '--tasks is "0": a whole number from 2 to 64' },
    { args: ["perf", "--tasks", "1"], says: '--tasks is "1"' },
    { args: ["perf", "--tasks", "65"], says: '--tasks is "65"' },
    { args: ["perf", "--tasks", "3000"], says: '--tasks is "3000"' },
    { args: ["perf", "--tasks", "x"], says: '--tasks is "x"' },
    {
      args: ["perf", "--tasks", "4", "--test", "barrier", "--test", "am_lat"],
      says: "--test am_lat: it is for barrier",
    },
    { args: ["perf", "--tasks", "4", "--link", "udp"], says: "--tasks does not go with --link" },
    { args: ["perf", "--tasks", "8", "--bytes", "4194305"], says: '--bytes is "4194305"' },
    { args: ["perf", "--tasks", "4", "--system", "ring"], says: "ring has no barrier" },
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

  it.skipIf(process.platform !== "linux")("--try: whether processes share memory, and why not", () => {
    const infoTried = (...options: string[]) =>
      spawnSync(process.execPath, [...options, cli, "info", "--try"], { encoding: "utf8" });
    expect(infoTried().stdout).toMatch(/^ {2}processes +share memory$/m);
    const { stdout, stderr } = infoTried("--no-addons");
    expect(stdout).toMatch(/^ {2}processes +share no memory: .*koffi/m);
    // The warning of launch() would say it again.
    expect(stderr).toBe("");
  });

  it.skipIf(process.platform !== "linux")("without --try: what is installed says so", () => {
    expect(infoWith({})).toMatch(/^ {2}processes +share memory, by what is installed \(--try/m);
    expect(infoWith({}, ["--no-addons"])).toMatch(
      /^ {2}processes +share no memory: node --no-addons does not load koffi$/m,
    );
    const options = { NODE_OPTIONS: "--no-addons" };
    expect(infoWith(options)).toMatch(/^ {2}processes +share no memory: node --no-addons does not load koffi$/m);
  });

  describe("runs no code of optional packages, and shows their versions and paths", () => {
    const root = mkdtempSync(join(inject("folder"), "info-"));
    const marker = join(root, "ran");
    const installed = join(root, "node_modules");
    const copied = join(installed, "pamir", "dist", "cli.js");
    /** A package that notes that it was loaded. */
    const plant = (name: string, file: string, said: string): string => {
      const path = join(installed, name, file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, `require("node:fs").appendFileSync(${JSON.stringify(marker)}, __filename);`);
      writeFileSync(join(installed, name, "package.json"), said);
      return realpathSync(path);
    };

    it.each([
      ["3.3.4", '{ "name": "koffi", "version": "3.3.4", "main": "lib/index.js" }'],
      // Node finds "main" without the name, but whose version that is, nobody says.
      ["without a version", '{ "main": "lib/index.js", "version": "9.9.9" }'],
      ["without a version", '{ "name": "koffi", "version": { "a": 1 }, "main": "lib/index.js" }'],
      ["7\\x1b[31m", '{ "name": "koffi", "version": "7\\u001b[31m", "main": "lib/index.js" }'],
    ])("%s, of %s", (version, said) => {
      for (const part of ["dist", "package.json"]) cpSync(part, join(installed, "pamir", part), { recursive: true });
      const koffi = plant("koffi", "lib/index.js", said);
      const ws = plant("ws", "index.js", '{ "name": "ws", "version": "8.0.0", "exports": "./index.js" }');
      const { status, stdout, stderr } = spawnSync(process.execPath, [copied, "info"], {
        encoding: "utf8",
        env: cleanEnv,
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      const rowOf = (name: string) =>
        stdout
          .split("\n")
          .find((line) => line.startsWith(`  ${name} `))
          ?.slice(27);
      expect(rowOf("koffi")).toBe(`${version}, ${koffi}`);
      expect(rowOf("ws")).toBe(`8.0.0, ${ws}`);
      expect(existsSync(marker)).toBe(false);
      const { stdout: json } = spawnSync(process.execPath, [copied, "info", "--json"], {
        encoding: "utf8",
        env: cleanEnv,
      });
      expect(JSON.parse(json)).toMatchObject({
        packages: { koffi: { path: koffi }, ws: { version: "8.0.0", path: ws } },
        processes: { tried: false },
      });
      expect(existsSync(marker)).toBe(false);
    });
  });
});
