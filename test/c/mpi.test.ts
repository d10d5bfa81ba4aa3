// Programs of MPI in C, as a user runs them: the same lines as by any other MPI, in every placement; and how ranks end.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { checkProgram, launchProgram, programLimits } from "pamir/c";
import { describe, expect, inject, it } from "vitest";
import { byEffort, sample } from "../support/effort.js";
import { run } from "../support/run-command.js";
import { replayNote, SEED } from "../support/seed.js";

const built = (name: string): string => resolve(import.meta.dirname, `built/${name}.wasm`);
const source = (name: string): string => resolve(import.meta.dirname, `programs/${name}.c`);

/** Placements, with the number of ranks. */
const WAYS: readonly (readonly string[])[] = [
  ["-n", "1"],
  ["-n", "2"],
  ["-n", "4"],
  ["-n", "7"],
  ["-n", "3", "--nodes", "3"],
  ["-n", "4", "--nodes", "2"],
  ...(process.platform === "linux" ? [["-n", "3", "--processes", "3"]] : []),
];
const drawn = [
  ...sample(WAYS, byEffort({ quick: 1, normal: 3, deep: WAYS.length }), "placements of programs in C"),
  ...sample(WAYS, byEffort({ quick: 1, normal: 2, deep: WAYS.length }), "placements of isolated programs in C").map(
    (way) => [...way, "--isolate"],
  ),
];

const HAS_MPI = process.env.PAMIR_REQUIRE_LAUNCHERS !== undefined || spawnSync("mpicc", ["--version"]).status === 0;
if (!HAS_MPI) console.log("not run: the programs in C by another MPI, since there is no mpicc");

/** What a program says. Other lines are errors. */
function linesOf(name: string, way: readonly string[]): string[] {
  const { status, stdout, stderr } = run(...way, "--no-labels", built(name));
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout.trim().split("\n");
}

/** What it says by the MPI of this machine, in three ranks. */
function nativeLinesOf(name: string): string[] {
  const program = join(mkdtempSync(join(inject("folder"), "mpi-")), name);
  const made = spawnSync("mpicc", ["-O1", source(name), "-o", program], { encoding: "utf8" });
  expect(made).toMatchObject({ status: 0 });
  const root = process.getuid?.() === 0 ? ["--allow-run-as-root"] : [];
  const { stdout } = spawnSync("mpirun", [...root, "--oversubscribe", "-n", "3", program], {
    encoding: "utf8",
    timeout: 120_000,
    // Its windows over RDMA crash in MPI_Compare_and_swap() (Open MPI 4.1.4, vader without CMA).
    env: { ...process.env, OMPI_MCA_osc: "^rdma" },
  });
  return stdout.trim().split("\n");
}

describe.each(["messages", "collectives", "nonblocking", "topologies", "objects", "windows", "accumulates"])(
  "%s.c",
  (name) => {
    // Windows take memory that other ranks reach.
    const ways = ["windows", "accumulates"].includes(name) ? drawn.filter((way) => !way.includes("--isolate")) : drawn;
    it.each(ways.map((way) => [way.join(" "), way] as const))("keeps the rules of MPI: %s", (_, way) => {
      const ranks = way[1] as string;
      const lines = linesOf(name, way);
      expect(lines.length).toBeGreaterThan(6);
      for (const line of lines) expect(line).toMatch(new RegExp(`: ${ranks} of ${ranks}$`));
    });

    it.skipIf(!HAS_MPI)("says the same by the MPI of this machine", () => {
      expect(linesOf(name, ["-n", "3"])).toEqual(nativeLinesOf(name));
    });
  },
);

// The lines of another MPI differ: its two forms of a reduction have sums of other digits.
it.each(
  [...drawn.filter((way) => !way.includes("--isolate")), ["-n", "2"], ["-n", "9"]].map(
    (way) => [way.join(" "), way] as const,
  ),
)("short.c keeps the rules of MPI: %s", (_, way) => {
  const ranks = way[1] as string;
  const rules = ["digits", "others", "between", "communicators", "late", "barriers", "messages", "progress", "errors"];
  expect(linesOf("short", way)).toEqual(rules.map((rule) => `${rule}: ${ranks} of ${ranks}`));
});

it.each(drawn.map((way) => [way.join(" "), way] as const))(
  `random messages come whole, once and in order: %s (${replayNote()})`,
  (_, way) => {
    const rounds = byEffort({ quick: 10, normal: 30, deep: 200 });
    const { status, stdout, stderr } = run(...way, "--no-labels", built("random"), String(SEED), String(rounds));
    const all = rounds * Number(way[1]);
    expect({ status, stderr, stdout }).toEqual({ status: 0, stderr: "", stdout: `${all} of ${all} rounds\n` });
  },
);

it("heap.c: a libc that asks for its heap in parts gets all of it", () => {
  const lines = linesOf("heap", ["-n", "2"]);
  expect(lines.length).toBe(8);
  for (const line of lines) expect(line).toMatch(/: kept$/);
});

describe("a program with a memory of its own", () => {
  it("has buffers beyond 2 GiB, and grows while messages are under way", () => {
    const lines = linesOf("large", ["-n", "3", "--isolate"]);
    if (HAS_MPI) expect(lines).toEqual(nativeLinesOf("large"));
    expect(lines.length).toBe(14);
    for (const line of lines) expect(line).toMatch(/: 3 of 3$/);
  });

  it.each([
    ["exit", 9, /pamir: task 1 exited with code 9/],
    ["trap", 1, /pamir: task 1: the program has trapped: unreachable/],
    ["stack", 1, /pamir: task 1: the program's stack has run over its end/],
    ["null", 1, /pamir: task 1: the program's stack has run over its end.*; or the program has written through NULL/],
    ["rank", 6, /pamir: task 1: MPI_Send: rank 77 is none of 0 to 1 \(MPI_ERR_RANK\)/],
    ["buffer", 1, /pamir: task 1: MPI_Send: the buffer of 8 bytes at 4294967288 ends beyond the program's memory/],
  ])("ends by %s with code %i", (how, code, text) => {
    const { status, stderr } = run("-n", "2", "--no-labels", "--isolate", built("ends"), how);
    expect(stderr).toMatch(text);
    expect(status).toBe(code);
  });

  it("is what a program of WASI gets that nothing can move", () => {
    const { status, stdout } = run("-n", "1", "--no-labels", built("process"), "nested");
    expect({ status, lines: stdout.trim().split("\n").slice(1) }).toEqual({
      status: 7,
      lines: ["1: nested", "atexit"],
    });
  });

  it.each([
    ["-n", "4"],
    ["-n", "4", "--nodes", "2"],
  ])("is what Rust's compiler makes: %s %s", (...way) => {
    const { status, stdout, stderr } = run(...way, "--no-labels", built("pi"));
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const lines = [0, 1, 2, 3].flatMap((rank) => {
      const before = (rank + 3) % 4;
      return [
        `rank ${rank} of 4: pi 3.141593, 2 numbers from rank ${before}: ${before}`,
        `rank ${rank}: with [${rank % 2}, ${(rank % 2) + 2}]`,
      ];
    });
    expect(stdout.trim().split("\n").sort()).toEqual(lines.sort());
  });

  it("may import MPI's functions from the module env, as Zig's compiler has it", () => {
    const binary = readFileSync(built("pi"));
    const [named, nameless] = [Buffer.from("\x03mpi"), Buffer.from("\x03env")];
    let count = 0;
    for (let at = binary.indexOf(named); at >= 0; at = binary.indexOf(named, at)) {
      nameless.copy(binary, at);
      count++;
    }
    expect(count).toBeGreaterThan(5);
    const program = join(inject("folder"), "nameless.wasm");
    writeFileSync(program, binary);
    const { status, stdout, stderr } = run("-n", "2", "--no-labels", program);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout.match(/of 2: pi 3\.141593/g)?.length).toBe(2);
  });

  it("is refused to a task of JavaScript", () => {
    const { status, stderr } = run("-n", "2", "--isolate", "examples/hello.js");
    expect({ status, stderr }).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("--isolate is for programs of WebAssembly"),
    });
  });
});

describe("a rank that ends", () => {
  const ends = (how: string, ...more: string[]) => run("-n", "2", "--no-labels", ...more, built("ends"), how);

  it.each([
    ["exit", 9, /pamir: task 1 exited with code 9/],
    ["MPI_Abort", 5, /pamir: task 1: MPI_Abort\(5\)/],
    ["abort", 134, /pamir: task 1: the program called abort\(\)/],
    ["trap", 1, /pamir: task 1: the program has trapped: unreachable/],
    ["stack", 1, /pamir: task 1: the program's stack has run over its end/],
    ["null", 1, /pamir: task [01]: the program, or another rank of its node, has written through NULL/],
    ["null far", 1, /pamir: task [01]: the program, or another rank of its node, has written through NULL/],
    ["absent", 1, /the program called MPI_File_open\(\), which pamir does not have/],
    ["rank", 6, /pamir: task 1: MPI_Send: rank 77 is none of 0 to 1 \(MPI_ERR_RANK\)/],
  ])("by %s: exit code %i, and a line that says why", (how, code, text) => {
    const { status, stderr } = ends(how);
    expect(stderr).toMatch(text);
    expect(status).toBe(code);
  });

  it.each(["exit", "abort", "trap", "return"])(
    "by %s: a receive from it and an operation that has begun fail with an error class",
    (how) => {
      const { stdout } = ends(how, "--on-error", "report");
      expect(stdout).toBe("rank 0: MPIX_ERR_PROC_FAILED, MPIX_ERR_PROC_FAILED\n");
    },
  );

  // A quarter of the memory is kept for lanes: the shares of all ranks leave MPI some of the rest.
  it("finds its share of the memory as one of many ranks", () => {
    const { status, stdout, stderr } = run("-n", "32", "--heap-bytes", String(2 ** 30), "--no-labels", built("hello"));
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout.trim().split("\n").sort()).toEqual(
      Array.from({ length: 32 }, (_, rank) => `rank ${rank} of 32, sum 496`).sort(),
    );
  });

  // A context that is never made keeps room for a lane to each other one: with four for each rank, nothing would be left here.
  it("stores messages without a receive as one of many ranks", () => {
    const way = ["-n", "32", "--heap-bytes", String(2 ** 29), "--no-labels"];
    const { status, stdout, stderr } = run(...way, built("unexpected"), "1200", "1000");
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "38400 of 38400\n", stderr: "" });
  });

  it("has more memory for messages than the default by --heap-bytes", () => {
    const limits = programLimits(readFileSync(built("unexpected")), 2);
    expect(limits).toEqual({ contexts: 1, heapBytes: 2 ** 31 + 2 ** 25 });
    expect(programLimits(readFileSync(built("pami")), 1024)).toEqual({ contexts: undefined, heapBytes: 3.5 * 2 ** 30 });
    const { status, stdout } = run(
      "-n",
      "2",
      "--heap-bytes",
      "4000000000",
      "--no-labels",
      built("unexpected"),
      "9",
      "9",
    );
    expect({ status, stdout }).toEqual({ status: 0, stdout: "18 of 18\n" });
  });

  it("that has no room for a message says what is stored, the limit and the remedy", () => {
    const way = ["-n", "4", "--heap-bytes", String(2 ** 25), "--no-labels"];
    const { status, stderr } = run(...way, built("unexpected"), "100000", "1000");
    expect(stderr).toMatch(
      /pamir: task \d: MPI_\w+: no 1048576 bytes in one piece: .* lanes; .*; \d+ messages of \d{6,} bytes have no receive yet; 4 tasks share heapBytes of 33554432: give them more, up to 4 GiB \(pamir run --heap-bytes\), or a node fewer tasks \(PAMIR_NO_MEMORY\)/,
    );
    expect(stderr).not.toMatch(/\d errors|AggregateError/);
    expect(status).toBe(1);
  });

  it("without room is told by launchProgram(), too", async () => {
    const entry = new URL("../../demo/c/rank-task.js", import.meta.url);
    const program = readFileSync(built("unexpected"));
    const { code, ranks } = await launchProgram(entry, {
      ...{ program, tasks: 2, args: ["100000", "1000"], heapBytes: 2 ** 24, onLine: () => {} },
    });
    const failed = ranks.find(({ error }) => (error as { code?: string } | undefined)?.code === "PAMIR_NO_MEMORY");
    expect(failed?.error?.message).toMatch(/^MPI_\w+: no .*; 2 tasks share heapBytes of 16777216: give them more/);
    expect(code).toBe(1);
  });

  it("gets NULL from malloc() beyond its heap", () => {
    const { status, stdout } = ends("heap");
    expect({ status, stdout }).toEqual({ status: 0, stdout: "NULL\n" });
  });

  it("has more communicators than a task may have regions", () => {
    const { status, stdout, stderr } = run("-n", "2", "--no-labels", built("many"));
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "2200 of 2200\n", stderr: "" });
  });

  it("has no communicator beyond the last number that the engine has", () => {
    const { status, stderr } = run("-n", "1", "--no-labels", built("many"), "limit");
    expect(stderr).toMatch(/the communicator would be number 16384: a task makes at most 16384, freed ones included/);
    expect(status).toBe(1);
  });

  it("has no memory beyond 2^31, where its pointers would be negative; what MPI keeps may lie there", async () => {
    const { launch } = await import("pamir");
    const { runProgram } = await import("pamir/c");
    const binary = readFileSync(built("messages"));
    const job = await launch(null, { tasks: 1, join: true, contexts: 1, heapBytes: 3e9 });
    const { client } = job;
    let out = "";
    const write = (_: 1 | 2, bytes: Uint8Array): void => {
      out += new TextDecoder().decode(bytes);
    };
    const options = { args: ["messages"], env: {}, folders: [], write };
    const heapBytes = 2 ** 22;
    const arenaBytes = checkProgram(binary) + heapBytes;
    const { bytes } = client.createRegion(1);
    // Behind this one is room for the program alone.
    client.createRegion(2 ** 31 - bytes.byteOffset - arenaBytes - 2 ** 17);
    const { error } = await runProgram(client, binary, { ...options, heapBytes });
    expect(error).toBe(undefined);
    for (const line of out.trim().split("\n")) expect(line).toMatch(/: 1 of 1$/);
    await expect(runProgram(client, binary, { ...options, heapBytes })).rejects.toMatchObject({
      code: "PAMIR_NO_MEMORY",
      message: expect.stringMatching(/would end at address \d+, the limit is 2147483648: /),
    });
    await job.terminate();
  });

  it("may call nothing but a few before MPI_Init()", () => {
    const { status, stderr } = ends("before");
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/MPI_Comm_rank\(\) was called before MPI_Init\(\)/);
  });
});

describe("what is no program", () => {
  it("runProgram() refuses it", async () => {
    const { launch } = await import("pamir");
    const { runProgram } = await import("pamir/c");
    const job = await launch(null, { tasks: 1, join: true });
    const options = { args: [], env: {}, folders: [], write: () => {} };
    for (const [bytes, text] of [
      [new Uint8Array(0), "it begins with no byte, not 00 61 73 6d"],
      [Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8), "it begins with 01 02 03 04"],
      [Uint8Array.of(0, 0x61, 0x73, 0x6d, 2, 0, 0, 0), "version 2, not a module of version 1"],
      [Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 9), "section 1 ends at byte 19 of 10"],
    ] as const) {
      await expect(runProgram(job.client, bytes, options)).rejects.toMatchObject({
        code: "PAMIR_PROGRAM",
        message: expect.stringContaining(text),
      });
    }
    await job.terminate();
  });

  it("a binary without a start function is refused", () => {
    const { status, stderr } = run("-n", "2", resolve(import.meta.dirname, "../../dist/pamir.wasm"));
    expect(status).toBe(2);
    expect(stderr).toMatch(/the program has no start function: it is no command \(PAMIR_PROGRAM\)/);
  });

  it("a binary that can't be moved and is to be is refused, and the text says what lacks", async () => {
    const { checkProgram } = await import("pamir/c");
    expect(() => checkProgram(readFileSync(built("process")), false)).toThrow(
      "the program can't be moved: its heap has no end: it was not linked by pamir cc",
    );
    expect(checkProgram(readFileSync(built("process")))).toBeGreaterThan(65_536);
  });
});
