// The programs of examples/c, as a user runs them: in any number of ranks and any placement, the lines of another MPI.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join, parse, resolve } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { byEffort, sample } from "../support/effort.js";
import { run } from "../support/run-command.js";

const sources = readdirSync("examples/c").sort();
const RANKS = [1, 2, 4, 7];
const WAYS = RANKS.flatMap((ranks) =>
  [
    [],
    ...(process.platform === "linux" ? [["--processes", `${ranks}`]] : []),
    ...(ranks > 1 ? [["--nodes", ranks === 7 ? "7" : "2"]] : []),
  ].map((more) => ["-n", `${ranks}`, ...more]),
);

const HAS_MPI = process.env.PAMIR_REQUIRE_LAUNCHERS !== undefined || spawnSync("mpicc", ["--version"]).status === 0;
if (!HAS_MPI) console.log("not run: examples/c by another MPI, since there is no mpicc");

/** Times differ from run to run. */
const withoutTimes = (text: string): string => text.replace(/[\d.]+ us$/gm, "# us");

/** What a program prints in some ranks. */
const expected = (name: string, ranks: string): string =>
  name === "ping-pong" && ranks === "1"
    ? "ping-pong needs two ranks: pamir run -n 2 ping-pong.wasm\n"
    : readFileSync(`test/c/expected/${name}.txt`, "utf8");

/** Compiles a program for the MPI of this machine. No multiplication may be fused with an addition, as in WebAssembly. */
function compileNative(source: string): string {
  const { name, ext } = parse(source);
  const program = join(mkdtempSync(join(inject("folder"), "examples-")), name);
  const compiler = ext === ".cpp" ? ["mpic++", "-std=c++17"] : ["mpicc"];
  const args = [...compiler.slice(1), "-O1", "-ffp-contract=off", join("examples/c", source), "-o", program, "-lm"];
  const { status, stderr } = spawnSync(compiler[0] as string, args, { encoding: "utf8" });
  expect(status, stderr).toBe(0);
  return program;
}

describe.each(sources)("%s", (source) => {
  const { name } = parse(source);
  const ways = sample(WAYS, byEffort({ quick: 1, normal: 2, deep: WAYS.length }), `placements of ${source}`);

  it.each(ways.map((way) => [way.join(" "), way] as const))("prints what is expected: %s", (_, way) => {
    const { status, stdout, stderr } = run(...way, "--no-labels", resolve(`test/c/built/${name}.wasm`));
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(withoutTimes(stdout)).toBe(expected(name, way[1] as string));
  });

  it.skipIf(!HAS_MPI)("prints the same by the MPI of this machine", () => {
    const program = compileNative(source);
    const root = process.getuid?.() === 0 ? ["--allow-run-as-root"] : [];
    const { stdout, stderr } = spawnSync("mpirun", [...root, "--oversubscribe", "-n", "3", program], {
      encoding: "utf8",
      timeout: 120_000,
      // As in mpi.test.ts: its windows over RDMA crash.
      env: { ...process.env, OMPI_MCA_osc: "^rdma" },
    });
    expect(withoutTimes(stdout), stderr).toBe(expected(name, "3"));
  });
});

it("each program is short, and says how it is compiled and run", () => {
  expect(readdirSync("test/c/expected").map((file) => parse(file).name)).toEqual(
    sources.map((source) => parse(source).name),
  );
  for (const source of sources) {
    const { name, ext } = parse(source);
    const text = readFileSync(join("examples/c", source), "utf8");
    const command = ext === ".cpp" ? "c++" : "cc";
    expect(text).toContain(`npx pamir ${command} -O2 ${source} -o ${name}.wasm && npx pamir run -n `);
    expect(text.split("\n").length).toBeLessThanOrEqual(82);
    expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(120);
  }
});
