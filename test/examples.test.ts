// Every program of examples/ runs as it stands.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

/** What a program prints; it must end with exit code 0. */
function output(file: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], {
    encoding: "utf8",
    timeout: 100_000,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout;
}

/** What one of the Parallel Research Kernels prints: a line for each number of tasks. */
function kernel(line: string): RegExp {
  return new RegExp(`^${[1, 2, 4].map((tasks) => `tasks: ${tasks}, ${line}\n`).join("")}$`);
}

describe("examples", () => {
  const expected: Record<string, RegExp> = {
    "first.js":
      /^12 squared is 144, says a worker\n41538 primes below 500,000, .*\nthe shared array, .*: 7, 14, 21, 28\n$/,
    "hello.js": /task [01] hears 4[23]\ntask [01] hears 4[23]/,
    "mpi.js": /^200 generations on 4 ranks: 0 cells differ, (\d+) of \1 are alive\n$/,
    "pi.js": /π ≈ 3\.1415926535\d\d, off by \d\.\de[+-]\d+/,
    "heat.js": /4000 cells, 2000 steps on 4 tasks: 0 cells differ/,
    "p2p.js": kernel("corner: 41958 as it must be, \\d+ MFlop/s"),
    "stencil.js": kernel("norm: 42 as it must be, \\d+ MFlop/s"),
    "transpose.js": kernel("sum of errors: 0 as it must be, \\d+ MB/s"),
    "nstream.js": kernel("checksum: 336000000 as it must be, \\d+ MB/s"),
    "random.js": kernel("wrong words: 0 as it must be, [\\d.]+ million updates/s"),
    "hash-pool.js":
      /^10 of 40 blocks\n20 of 40 blocks\n30 of 40 blocks\n40 of 40 blocks\nhash: 456b5e1e as it must be, 4 workers died, \d+ MB\/s\n$/,
    "rpc.js": /^all as it must be, \d+ thousand calls\/s\n$/,
    "stream.js": /^tasks: 2, 4194304 bytes to each: every SHA-256 is right, \d+ MB\/s\n$/,
    // Three rows: that is, all bytes have arrived in each way.
    "frames.js":
      /^8 MiB .*\nengine inline( +[\d.]+ ms){3}\nengine thread( +[\d.]+ ms){3}\npostMessage \(clone\)( +[\d.]+ ms){3}\n$/,
  };
  /** For what is too much for a test. */
  const args: Record<string, string[]> = { "frames.js": ["8"] };

  test("each has an expectation here", () => {
    // test/c/examples.test.ts has those in C; folders have files of other kinds.
    const programs = readdirSync("examples").filter((name) => name.endsWith(".js"));
    expect(programs.sort()).toEqual(Object.keys(expected).sort());
  });

  for (const [file, pattern] of Object.entries(expected)) {
    test(file, () => expect(output(join("examples", file), ...(args[file] ?? []))).toMatch(pattern));
  }

  test.each(["hash-pool.js", "rpc.js"])("%s by the kernels in TypeScript", (file) => {
    expect(output(join("examples", file), "ts")).toMatch(expected[file] as RegExp);
  });

  test("the number of tasks can be said", () => {
    expect(output(join("examples", "stencil.js"), "3")).toMatch(/^tasks: 3, norm: 42 as it must be, \d+ MFlop\/s\n$/);
  });
});
