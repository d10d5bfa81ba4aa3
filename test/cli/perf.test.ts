// `pamir perf` and the bench with tiny inputs, so that they cannot rot: structure only, never a time. A machine without
// compiler or MPI passes too: what is missing is reported. Exit code 3 only says that the machine was unsteady.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, inject, it, vi } from "vitest";
import { type Cell, conduct, ONCE, type Patience } from "../../bench/perf/conduct.js";
import { ratiosOf } from "../../bench/perf/goals.js";
import { within } from "../../bench/perf/peers.js";
import { type Handoff, type System, TESTS } from "../../bench/perf/plan.js";
import { parseList } from "../../bench/perf/processors.js";
import { jsonOf, type Report, textOf } from "../../bench/perf/report.js";
import { COLLECTIVE_TESTS } from "../../bench/perf/work.js";
import { byEffort, sample } from "../support/effort.js";
import { NATS_SERVER } from "../support/nats-server.js";
import { killAllWith, PATIENCE, processesWith } from "../support/run-command.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

function node(
  script: string,
  args: string[],
  env = process.env,
): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [join(root, script), ...args], { encoding: "utf8", env });
}

function quick(args: string[], env = process.env) {
  const { status, stdout, stderr } = node("dist/cli.js", ["perf", "--quick", "--json", ...args], env);
  expect([0, 3], stderr).toContain(status);
  // Where standard error is no terminal: a line for each test and size.
  const lines = stderr.trimEnd().split("\n");
  for (const line of lines) expect(line).toMatch(/^pamir perf: measures \w+ \d+ B$/);
  expect(new Set(lines).size).toBe(lines.length);
  return JSON.parse(stdout);
}

const latency = { p50_ns: expect.any(Number), p999_ns: expect.any(Number), messages_per_s: null, bytes_per_s: null };
const rate = { p50_ns: null, p999_ns: null, messages_per_s: expect.any(Number), bytes_per_s: expect.any(Number) };

describe("a run that does not end", () => {
  it("is ended, and the error says so", async () => {
    let end = (_: string) => {};
    const run = new Promise<string>((resolve) => {
      end = resolve;
    });
    await expect(within(20, run, () => end("ended"))).rejects.toThrow("ended: not done after 0.02 s");
  });

  it("one that ends in time gives its result, one that fails its error", async () => {
    expect(await within(1e6, Promise.resolve(7), () => {})).toBe(7);
    await expect(within(1e6, Promise.reject(new Error("why")), () => {})).rejects.toThrow("why");
  });
});

describe("a machine on which one hand-off of all was lucky", () => {
  /** How often one system was measured, of whose runs two are asked for. */
  async function runsWith(patience: Patience): Promise<{ measured: number; repeated: number }> {
    let measured = 0;
    let handoffs = 0;
    const system: System = {
      name: "counted",
      what: "",
      does: () => true,
      prepare: () => ({
        run: async () => {
          measured++;
          return { p50_ns: 1 };
        },
      }),
    };
    const handoff: Handoff = { run: async () => ({ p50_ns: handoffs++ === 0 ? 72 : 256 }), by: "wasm" };
    const tests = TESTS.filter(({ name }) => name === "am_lat");
    const options = { tests, systems: [system], bytes: [], runs: 2, tasks: 2, json: false, quick: false, goals: false };
    const { repeated } = await conduct(options, () => {}, patience, handoff);
    return { measured, repeated };
  }

  it("each run is measured once by pamir stream, which does not wait for another such moment", async () => {
    expect(await runsWith(ONCE)).toEqual({ measured: 2, repeated: 0 });
  });

  it("each run is repeated as often as was asked for, and no more", async () => {
    expect(await runsWith({ repeatsOfRun: 3, repeats: 60, looks: 1 })).toEqual({ measured: 8, repeated: 6 });
    expect(await runsWith({ repeatsOfRun: 3, repeats: 4, looks: 1 })).toEqual({ measured: 6, repeated: 4 });
  });
});

const REPORT: Report = {
  pamir: "0.1.0",
  node: "v20",
  cpu: "a processor",
  date: "",
  handoff_ns: [50],
  void: false,
  results: [],
  handoff: "wasm",
  tasks: 2,
  pinned: [],
  repeated: 0,
  skipped: [],
  ratios: [],
  notes: [],
};

it.each(TESTS.filter(({ figure }) => figure === "bandwidth"))("shows $name in bytes, the median too", ({ name }) => {
  const noLatency = { p50_ns: null, p90_ns: null, p99_ns: null, p999_ns: null, gcs: null };
  const rates = { messages_per_s: 1000, bytes_per_s: 4e9, min: 3e9, max: 5e9, handoff_ns: 50 };
  const result = { test: name, system: "pamir-wasm", bytes: 4_000_000, runs: 3, ...noLatency, ...rates };
  expect(textOf({ ...REPORT, results: [result] }, false)).toMatch(/4.00 GB\/s .* 3.00 GB\/s – 5.00 GB\/s/);
});

it("shows goals only where they are asked for", () => {
  const ratio = {
    what: "am_lat 8 B against openmpi",
    ratio: 0.8,
    min: 0.7,
    max: 0.9,
    goal: "≤ 1",
    hoped: "≤ 0.5",
    met: true,
    ahead: "pamir" as const,
  };
  const report: Report = { ...REPORT, ratios: [ratio] };
  const goals = /goal|hoped|met\b|≤/;
  for (const show of [textOf, jsonOf]) {
    expect(show(report, false)).toContain(ratio.what);
    expect(show(report, false)).not.toMatch(goals);
    expect(show(report, true)).toMatch(goals);
  }
});

it("has goals for two tasks alone, and tells of any number which system is ahead", () => {
  const test = TESTS.find(({ name }) => name === "barrier") as (typeof TESTS)[number];
  const cell = (system: string, p50_ns: number): Cell =>
    ({ test, system, bytes: 0, runs: [{ p50_ns, handoff_ns: 50 }] }) as Cell;
  const cells = [cell("pamir-wasm", 80), cell("openmpi", 100)];
  const row = { what: "barrier against openmpi", ratio: 0.8, ahead: "pamir" };
  expect(ratiosOf(cells)).toMatchObject([{ ...row, goal: "≤ 0.9", met: true }]);
  expect(ratiosOf(cells, 4)).toMatchObject([{ ...row, goal: null, hoped: null, met: null }]);
});

it("has a row wherever the other system is ahead, also where no row was asked for, and says so", () => {
  const cell = (system: string, name: string, bytes: number, values: number[]): Cell => {
    const test = TESTS.find((one) => one.name === name) as (typeof TESTS)[number];
    const runs = values.map((value) => ({
      ...(test.figure === "latency" ? { p50_ns: value } : { messages_per_s: value }),
      handoff_ns: 50,
    }));
    return { test, system, bytes, runs } as Cell;
  };
  const ratios = ratiosOf([
    cell("pamir-wasm", "am_lat", 4096, [200, 210]),
    cell("pamir-ts", "am_lat", 4096, [100, 110]),
    cell("ring", "am_lat", 4096, [150, 160]),
    cell("postMessage", "am_lat", 4096, [900, 910]),
    cell("pamir-wasm", "am_bw", 1048576, [10, 10]),
    cell("ring", "am_bw", 1048576, [20, 20]),
    cell("postMessage", "am_bw", 1048576, [5, 5]),
    cell("tcp", "am_bw", 1048576, [40, 40]),
  ]);
  expect(ratios.map(({ what, ahead }) => [what, ahead])).toEqual([
    ["am_bw 1048576 B against ring", "the other"],
    ["am_lat 4096 B against ring", "the other"],
    ["am_bw 1048576 B against tcp", "the other"],
  ]);
  expect(textOf({ ...REPORT, ratios }, false)).toMatch(/am_lat 4096 B against ring *│ *1\.\d+ │.*│ the other/);
});

describe("pamir perf --quick --json", () => {
  it("has the documented shape", () => {
    const report = quick(["--test", "am_lat", "--system", "pamir-wasm"]);
    expect(report).toMatchObject({
      pamir: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.version,
      cpu: expect.any(String),
      date: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      void: expect.any(Boolean),
    });
    expect(report.handoff_ns.length).toBeGreaterThanOrEqual(2);
    expect(report.results).toHaveLength(1);
    const [result] = report.results;
    expect(result).toMatchObject({ test: "am_lat", system: "pamir-wasm", bytes: 8, runs: 1, ...latency });
    expect(result.min).toBeLessThanOrEqual(result.max);
    expect(result.p50_ns).toBeLessThanOrEqual(result.p999_ns);
  });

  it("--processes --test start: pamir run to a first message, beside bare processes", () => {
    const { results, skipped, ratios } = quick(["--processes", "--test", "start"]);
    expect(skipped).toEqual([]);
    expect(results.map(({ test, system }: never) => [test, system])).toEqual([
      ["start", "pamir-processes"],
      ["start", "node"],
    ]);
    expect(ratios.map(({ what }: never) => what)).toEqual(["start of pamir-processes against node"]);
  });

  it("--link udp: two nodes beside bare sockets, with sizes of its own", () => {
    const { results, skipped } = quick([
      "--link",
      "udp",
      "--system",
      "pamir-udp",
      "--system",
      "dgram",
      "--system",
      "tcp",
    ]);
    expect(skipped).toEqual([]);
    const rows = results.map(({ test, bytes, system }: never) => [test, bytes, system].join(" "));
    expect(rows.sort()).toEqual([
      "am_bw 1048576 dgram",
      "am_bw 1048576 pamir-udp",
      "am_bw 1048576 tcp",
      "am_lat 64 dgram",
      "am_lat 64 pamir-udp",
      "am_lat 64 tcp",
      "am_rate 64 dgram",
      "am_rate 64 pamir-udp",
      "put_bw 1048576 pamir-udp",
    ]);
    const websocket = quick(["--link", "websocket", "--system", "pamir-websocket", "--system", "ws"]);
    expect(websocket.skipped).toEqual([]);
    expect(websocket.results.map(({ test, bytes, system }: never) => [test, bytes, system].join(" ")).sort()).toEqual([
      "am_bw 1048576 pamir-websocket",
      "am_bw 1048576 ws",
      "am_lat 64 pamir-websocket",
      "am_lat 64 ws",
      "am_rate 64 pamir-websocket",
      "am_rate 64 ws",
      "put_bw 1048576 pamir-websocket",
    ]);
    const { status, stderr } = node("dist/cli.js", ["perf", "--link", "tcp"]);
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining('--link is "tcp"') });
  });

  it("--link udp: what losses cost", () => {
    const both = ["--system", "pamir-udp", "--system", "pamir-udp-lossy"];
    const { results, ratios } = quick(["--link", "udp", "--test", "put_bw", "--goals", ...both]);
    expect(results.length).toBe(2);
    const what = "put_bw 1048576 B with 1 % of packets lost against none";
    expect(ratios).toMatchObject([{ what, goal: "≥ 0.8" }]);
  });

  it("--link udp: nodes without threads for their agents, whose senders await room", () => {
    const system = ["--system", "pamir-udp-inline"];
    const { results, skipped } = quick(["--link", "udp", "--test", "am_lat", "--test", "am_rate", ...system]);
    expect(skipped).toEqual([]);
    expect(results.map(({ test, bytes }: never) => [test, bytes])).toEqual([
      ["am_lat", 64],
      ["am_rate", 64],
    ]);
  });

  it("idle_cpu: the time that a job of processes takes while it waits", () => {
    const { results } = quick(["--processes", "--test", "idle_cpu"]);
    expect(results.map(({ test, system }: never) => [test, system])).toEqual([["idle_cpu", "pamir-processes"]]);
    // In half a second, none of them may have run at all.
    expect((results[0] as { p50_ns: number }).p50_ns).toBeGreaterThanOrEqual(0);
  });

  it("takes several tests, sizes, systems and runs", () => {
    const tests = ["--test", "am_lat", "--test", "am_bw", "--bytes", "8", "--bytes", "100000", "--runs", "2"];
    const systems = sample(["pamir-wasm", "pamir-ts", "pamir-mixed"], byEffort({ quick: 1, normal: 2, deep: 3 }));
    const { results } = quick([...tests, ...systems.flatMap((system) => ["--system", system])]);
    const rows = results.map(({ test, bytes, system, runs }: never) => [test, bytes, system, runs].join(" "));
    const expected = ["am_lat", "am_bw"].flatMap((test) =>
      [8, 100000].flatMap((bytes) => systems.map((system) => `${test} ${bytes} ${system} 2`)),
    );
    expect(rows).toEqual(expected);
  });

  it.each([
    { test: "am_rate", systems: ["pamir-wasm", "postMessage", "ringbuf.js"], figures: rate },
    { test: "am_bw", systems: ["memcpy", "postMessage-transfer"], figures: rate },
    { test: "am_fan", systems: ["pamir-wasm"], figures: rate },
    { test: "wake_lat", systems: ["pamir-ts", "waitnotify"], figures: latency },
    { test: "idle", systems: ["pamir-wasm", "wasmcall"], figures: latency },
  ])("$test: $systems", ({ test, systems, figures }) => {
    const sizes = test === "am_bw" ? ["--bytes", "4096"] : [];
    const { results, skipped } = quick(["--test", test, ...sizes, ...systems.flatMap((name) => ["--system", name])]);
    expect(skipped).toEqual([]);
    expect(results.map(({ system }: { system: string }) => system)).toEqual(systems);
    for (const result of results) expect(result).toMatchObject({ test, runs: 1, ...figures });
    if (test === "am_rate") expect(results[0].gcs).toEqual(expect.any(Number));
  });

  it.each(["barrier", "broadcast", "allreduce", "allgather", "alltoall", "reduce_scatter"])(
    "%s of two tasks",
    (test) => {
      const { results, skipped } = quick(["--test", test, "--system", "pamir-wasm"]);
      expect(skipped).toEqual([]);
      expect(results.length).toBeGreaterThan(0);
      for (const result of results) expect(result).toMatchObject({ test, system: "pamir-wasm", runs: 1, ...latency });
    },
  );

  // With two cores, five tasks take turns.
  it("--tasks: collective operations of so many tasks, whatever divides their vectors", () => {
    const args = ["--tasks", "5", "--bytes", "24", "--system", "pamir-mixed", "--goals"];
    const { results, skipped, tasks, pinned, notes, ratios } = quick(args);
    expect({ skipped, tasks, pinned }).toEqual({ skipped: [], tasks: 5, pinned: [] });
    expect(results.map(({ test, bytes, system }: never) => [test, bytes, system].join(" "))).toEqual(
      COLLECTIVE_TESTS.map((test) => `${test} ${test === "barrier" ? 0 : 24} pamir-mixed`),
    );
    for (const result of results) expect(result).toMatchObject({ runs: 1, ...latency });
    expect(ratios).toEqual([]);
    const few = availableParallelism();
    const crowded = `there are 5 tasks and this machine runs ${few} threads at once`;
    expect(notes.includes(crowded)).toBe(few < 5);
  });

  it("--tasks: MPI has as many processes, or it is said why not", () => {
    const args = ["--tasks", "3", "--test", "barrier", "--system", "pamir-wasm", "--system", "openmpi"];
    const { results, skipped } = quick([...args, "--system", "mpich", "--system", "pamir-processes"]);
    const named = [...results, ...skipped].map(({ system }: { system: string }) => system);
    expect(named.toSorted()).toEqual(["mpich", "openmpi", "pamir-processes", "pamir-wasm"]);
    for (const { reason } of skipped) expect(reason).toMatch(/not installed|gives no core away/);
  });

  it("leaves out what is not installed, says so, and measures the hand-off in wasm", () => {
    const native = ["handoff", "ring", "openmpi", "mpich", "ucx", "futex"];
    const tests = ["am_rate", "am_lat", "wake_lat"].flatMap((name) => ["--test", name]);
    const args = [...tests, ...native.flatMap((name) => ["--system", name])];
    const report = quick(args, { PATH: "" });
    expect(report).toMatchObject({ handoff: "wasm", pinned: [] });
    expect(report.results.map(({ system }: { system: string }) => system)).toEqual(["handoff"]);
    const skipped = report.skipped.map(({ system }: { system: string }) => system);
    expect(skipped).toEqual(["openmpi", "mpich", "ucx", "ring", "futex"]);
    for (const { reason } of report.skipped) expect(reason).not.toBe("");
  });

  it("measures natives where they are installed, or says why not", () => {
    const systems = ["ring", "openmpi", "mpich", "ucx", "ucx-uct", "futex"];
    const tests = ["--test", "am_rate", "--test", "wake_lat"];
    const { results, skipped } = quick([...tests, ...systems.flatMap((name) => ["--system", name])]);
    const named = [...results, ...skipped].map(({ system }: { system: string }) => system);
    expect(named.toSorted()).toEqual(systems.toSorted());
  });
});

it("pamir perf prints tables", () => {
  const args = ["perf", "--quick", "--goals", "--test", "idle", "--system", "pamir-wasm", "--system", "wasmcall"];
  const { status, stdout } = node("dist/cli.js", args);
  expect([0, 3]).toContain(status);
  expect(stdout).toMatch(/idle .* pamir-wasm .* [nµm]?s /);
  expect(stdout).toMatch(/idle against wasmcall .* ≤ 4/);
});

it("the bench of loops says which of its goals are met", () => {
  const { status, stdout, stderr } = node("bench/loops.bench.mjs", ["--quick"]);
  expect(status, stderr).toBe(0);
  for (const [what, goal, hoped] of [
    ["sum of f64, 1 MiB, against the twin", 2, 3],
    ["sum of f64, 1 MiB, against C at -O3", 0.7, 0.95],
    ["pack of 8 B from 1,024 rows of 8 KiB against C at -O3", 0.6, 0.9],
    ["allreduce of 1 MiB against copies of 3/2 of it", 0.6, 0.85],
  ]) {
    const line = stdout.split("\n").find((one) => one.includes(`'${what}'`));
    expect(line).toMatch(/ '\d+\.\d\d' .* '(yes|NO)' | 'not measured' /);
    expect(line).toContain(`'≥ ${goal}'`);
    expect(line).toContain(`'≥ ${hoped}'`);
  }
  expect(stdout).not.toContain("NaN");
});

it("the bench of C says which of its goals are met, or what is not installed, and refuses other options", () => {
  const { status, stdout, stderr } = node("bench/c.bench.mjs", ["--quick"]);
  expect(status, stderr).toBe(0);
  if (!/^not run: /m.test(stdout) || process.env.PAMIR_REQUIRE_LAUNCHERS !== undefined) {
    const lines = stdout.split("\n").filter((line) => /^│ \d/.test(line));
    expect(lines.length).toBe(15);
    for (const line of lines) expect(line).toMatch(/ │ [1-9]\d* +│ [1-9]\d* +│ '\d+\.\d\d' .* '(yes|NO)?' /);
  }
  const without = node("bench/c.bench.mjs", ["--quick"], { PATH: "/nowhere" });
  expect(without.status, without.stderr).toBe(0);
  expect(without.stdout).toMatch(
    /^not run: pamir cc: .*\nnot run: mpicc: .*ENOENT\nnot run: mpirun of Open MPI: .*\n$/,
  );
  expect(node("bench/c.bench.mjs", ["--slow"])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('"--slow"'),
  });
});

it("the bench of NATS says which of its goals are met, or that there is no server, and refuses other options", () => {
  const { status, stdout, stderr } = node("bench/nats.bench.mjs", ["--quick"]);
  expect(status, stderr).toBe(0);
  if (NATS_SERVER === undefined) expect(stdout).toBe("not run: there is no nats-server\n");
  else {
    const lines = stdout.split("\n").filter((line) => /^│ \d/.test(line));
    expect(lines.length).toBe(6);
    for (const line of lines) expect(line).toMatch(/ '\d+(\.\d)? \S+' .* '\d+\.\d\d' .* '(yes|NO)?' /);
  }
  expect(node("bench/nats.bench.mjs", ["--slow"])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('"--slow"'),
  });
});

it("the bench of collectives finds limits, and writes them into what has the form of tuning.ts", () => {
  const folder = mkdtempSync(join(inject("folder"), "tune-test-"));
  try {
    const file = join(folder, "tuning.ts");
    const text = readFileSync(join(root, "src/collective/tuning.ts"), "utf8");
    writeFileSync(file, text);
    const args = ["--quick", "--tune", "--file", file, "--tasks", "2", "--nodes", "2"];
    const { status, stdout, stderr } = node("bench/collectives.bench.mjs", args);
    expect(status, stderr).toBe(0);
    const form = /^export const ([A-Z_]+) = ([^;]+);/gm;
    const limits = (of: string) => new Map([...of.matchAll(form)].map(([, name, value]) => [name, value]));
    const [found, before, after] = [limits(stdout), limits(text), limits(readFileSync(file, "utf8"))];
    expect([...after.keys()]).toEqual([...before.keys()]);
    for (const [name, value] of after) expect(value, name).toBe(found.get(name) ?? before.get(name));
    const left = [...before.keys()].filter((name) => !found.has(name));
    expect(left).toEqual(["BROADCAST_MEMBERS", "ALLTOALL_MEMBERS", "OPERANDS_SHORT"]);
    for (const name of left) expect(stdout).toContain(name);
    for (const [name, value] of found) {
      expect(name === "FLAT_SHORT" ? ["0", "8", "88"] : ["0", "64", "4096"], name).toContain(value);
    }
    // What it would change.
    for (const name of found.keys()) expect(stdout).toContain(`// now ${before.get(name)}\n`);
    for (const row of [
      "allreduce: flat : slices",
      "broadcast: direct : scatter-ring",
      "reduceScatter: slices : pairwise",
    ])
      expect(stdout).toContain(row);
    expect(stdout).not.toContain("NaN");
    expect(stdout).toContain("Measured with 2 tasks alone");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("the bench of calls tells of every pair", () => {
  const { status, stdout, stderr } = node("bench/calls.bench.mjs", ["--quick"]);
  expect([status, stderr]).toEqual([0, ""]);
  for (const name of ["callee blocks", "nobody blocks", "Comlink over pamir", "piscina", "workerpool"]) {
    expect(stdout).toContain(name);
  }
  expect(stdout).not.toContain("NaN");
});

it("the bench of traces tells what an event costs", () => {
  const { status, stdout, stderr } = node("bench/trace.bench.mjs", ["--quick"]);
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/an event, in the stream +-?\d+\.\d ns\n/);
});

it("the bench of the engine thread tells of puts, of what a large message costs its sender, and of small ones meanwhile", () => {
  const { status, stdout, stderr } = node("bench/engine.bench.mjs", ["--quick"]);
  expect(status, stderr).toBe(0);
  for (const row of [/puts of 64 KiB/, /the sender's time for 16 MiB/, /8 B one way while a large one is moved/]) {
    expect(stdout).toMatch(row);
  }
});

it("the bench of everyday programs has a figure for every row that is asked for", () => {
  const { stdout: help } = node("bench/everyday.bench.mjs", ["--help"]);
  const names = /Rows: (.*)/.exec(help)?.[1]?.split(", ") ?? [];
  expect(names.length).toBeGreaterThan(20);
  // Those against Open MPI are rows of `pamir perf`, tested above.
  const own = names.filter((name) => !/^am_(bw|rate|lat-openmpi)/.test(name));
  const wanted = sample(own, byEffort({ quick: 2, normal: 6, deep: own.length }), "rows");
  const args = ["--quick", "--json", "--base", root, ...wanted.flatMap((name) => ["--row", name])];
  const { status, stdout, stderr } = node("bench/everyday.bench.mjs", args);
  expect(stderr).toBe("");
  const { rows, skipped } = JSON.parse(stdout);
  expect(skipped.filter(({ failed }: { failed: boolean }) => failed)).toEqual([]);
  expect([0, 3]).toContain(status);
  const named = [...rows, ...skipped].map(({ name }: { name: string }) => name);
  expect(named.toSorted()).toEqual(wanted.toSorted());
  for (const { name, ratio } of rows) expect(ratio, name).toBeGreaterThan(0);
}, 300_000);

it("the bench of everyday programs refuses a row that it does not have", () => {
  const { status, stdout, stderr } = node("bench/everyday.bench.mjs", ["--row", "nothing"]);
  expect([status, stdout]).toEqual([2, ""]);
  expect(stderr).toContain("--row nothing: one of call-256k, ");
});

it("the bench of starts tells of messages and barriers, and compares two builds", () => {
  const { status, stdout, stderr } = node("bench/launch.bench.mjs", ["--quick", "--json", "--base", root]);
  expect([status, stderr]).toEqual([0, ""]);
  const { results } = JSON.parse(stdout);
  const named = results.map(({ first, system }: { first: string; system: string }) => `${first}: ${system}`);
  const systems = ["pamir", "base", "workers"];
  expect(named).toEqual(["message", "barrier"].flatMap((first) => systems.map((system) => `${first}: ${system}`)));
  for (const { time, processor, rss } of results) expect(Math.min(time, processor, rss)).toBeGreaterThan(0);
});

it("the bench of first operations compares them with later ones of the same program", () => {
  const { status, stdout, stderr } = node("bench/first.bench.mjs", ["--quick", "--json"]);
  // 3: a goal is not met.
  expect([0, 3], stderr).toContain(status);
  const { results } = JSON.parse(stdout);
  const forms = results.map(({ operation, form }: { operation: string; form: string }) => `${operation}, ${form}`);
  const expected = ["blocking", "promise"].flatMap((form) => [`barrier, ${form}`, `allreduce, ${form}`]);
  expect(forms.toSorted()).toEqual(["allreduce, new arrays", ...expected].toSorted());
  for (const { ratios } of results) {
    expect(ratios.map(({ at }: { at: number }) => at)).toEqual([20, 100, 1500]);
    for (const { ns, ratio } of ratios) expect(Math.min(ns, ratio)).toBeGreaterThan(0);
  }
});

it("the bench of deaths tells of every way to end", () => {
  const { status, stdout, stderr } = node("bench/deaths.bench.mjs", ["--quick"]);
  expect(stderr).toBe("");
  // 3: slower than is hoped for, which is not looked at here.
  expect([0, 3]).toContain(status);
  for (const name of ["throw", "exit", "terminate", "memory", "busy", "parked", "asleep", "blocked", "awaiting"]) {
    expect(stdout).toContain(name);
  }
  expect(stdout).toContain("5 of 5 came to PAMIR_SHUTDOWN");
  expect(stdout).toContain("0 of 5 promises settled");
  expect(stdout).not.toContain("NaN");
});

it("the bench writes JSON and a picture", () => {
  const out = mkdtempSync(join(inject("folder"), "bench-test-"));
  try {
    const args = ["--quick", "--out", out, "--test", "idle", "--system", "pamir-wasm", "--system", "wasmcall"];
    const { status, stdout, stderr } = node("bench/run.mjs", args);
    expect([0, 3], stderr).toContain(status);
    const files = readdirSync(out).toSorted();
    expect(files.map((name) => name.split(".").pop())).toEqual(["json", "svg"]);
    const all = JSON.parse(readFileSync(join(out, files[0] as string), "utf8"));
    expect(all.results).toHaveLength(2);
    expect(all.kernels.length).toBeGreaterThan(5);
    for (const { wasm_ns, ts_ns } of all.kernels) expect(Math.min(wasm_ns, ts_ns)).toBeGreaterThan(0);
    expect(all.sizes.map(({ met }: { met: boolean | null }) => met)).not.toContain(false);
    expect(readFileSync(join(out, files[1] as string), "utf8")).toMatch(/^<svg /);
    expect(stdout).toContain("Kernels");
  } finally {
    rmSync(out, { recursive: true });
  }
});

it.each([
  { list: "0-1\n", numbers: [0, 1] },
  { list: "3", numbers: [3] },
  { list: "0,2-4,7", numbers: [0, 2, 3, 4, 7] },
  { list: "", numbers: [] },
])("processors $list", ({ list, numbers }) => {
  expect(parseList(list)).toEqual(numbers);
});

describe("pamir perf without the packages that others bring", () => {
  const folder = mkdtempSync(join(inject("folder"), "perf-"));
  for (const part of ["dist", "package.json"]) cpSync(join(root, part), join(folder, part), { recursive: true });
  afterAll(() => rmSync(folder, { recursive: true }));
  const perf = (...args: string[]) =>
    spawnSync(process.execPath, [join(folder, "dist/cli.js"), "perf", "--quick", ...args], {
      encoding: "utf8",
      cwd: folder,
    });

  it("without ws: one line says that nothing was measured", () => {
    const { status, stdout, stderr } = perf("--link", "websocket");
    expect(stderr).toMatch(/^pamir: nothing was measured: pamir-websocket: the package ws is not installed; .*\n$/);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  });

  it("without koffi: a link is not measured as processes", () => {
    const { status, stdout, stderr } = perf("--json", "--processes", "--test", "am_lat", "--test", "start");
    expect([0, 3], stderr).toContain(status);
    const { results, skipped } = JSON.parse(stdout);
    const isProcesses = ({ system }: { system: string }) => system === "pamir-processes";
    expect(results.filter(isProcesses)).toEqual([]);
    expect(skipped.filter(isProcesses)).toEqual([
      { system: "pamir-processes", reason: expect.stringMatching(/^am_lat 8 B: .*koffi is not installed/) },
      { system: "pamir-processes", reason: expect.stringMatching(/^start 0 B: (.|\n)*koffi is not installed/) },
    ]);
  });
});

describe.runIf(process.platform === "linux")("pamir perf, ended by a signal while it measures", () => {
  it.each([
    ["SIGINT", ["--link", "udp", "--system", "pamir-udp"]],
    ["SIGTERM", ["--system", "pamir-processes"]],
  ] as const)("%s, %j: no file and no process is left, and no file had the key", async (signal, args) => {
    const TMPDIR = mkdtempSync(join(inject("folder"), "perf-"));
    const files = (): string[] =>
      (readdirSync(TMPDIR, { recursive: true }) as string[]).filter((one) => /perf-/.test(one));
    const processes = (): number[] => processesWith("TMPDIR", TMPDIR);
    const child = spawn(process.execPath, [join(root, "dist/cli.js"), "perf", "--test", "am_lat", ...args], {
      stdio: "inherit",
      env: { ...process.env, TMPDIR },
    });
    const ended = once(child, "exit");
    try {
      // The tasks have met, and measure.
      const hasMet = (file: string): boolean => file.endsWith("barrier") && statSync(join(TMPDIR, file)).size === 2;
      await vi.waitFor(() => expect(files().some(hasMet)).toBe(true), PATIENCE);
      expect(processes().length).toBeGreaterThan(2);
      expect(
        files()
          .map((file) => basename(file))
          .filter((file) => /key/.test(file)),
      ).toEqual([]);
      child.kill(signal);
      expect(await ended).toEqual([null, signal]);
      await vi.waitFor(() => expect(processes()).toEqual([]), PATIENCE);
      expect(files()).toEqual([]);
    } finally {
      killAllWith("TMPDIR", TMPDIR);
      rmSync(TMPDIR, { recursive: true });
    }
  });
});
