// `pamir cc` and `pamir c++`: with the clang of this machine, and without one.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { cli, run } from "../support/run-command.js";

const HAS_CLANG =
  process.env.PAMIR_REQUIRE_LAUNCHERS !== undefined || spawnSync("clang-19", ["--version"]).status === 0;
if (!HAS_CLANG) console.log("not run: pamir cc, since there is no clang-19");

function compile(command: "cc" | "c++", args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, command, ...args], {
    cwd: mkdtempSync(join(inject("folder"), "cc-")),
    encoding: "utf8",
    env,
    timeout: 120_000,
  });
  return { status, stdout, stderr };
}

/** A file with these lines. */
function file(name: string, lines: readonly string[]): string {
  const path = join(mkdtempSync(join(inject("folder"), "source-")), name);
  writeFileSync(path, lines.join("\n"));
  return path;
}

it("without arguments it says what it is for", () => {
  expect(compile("cc", [])).toMatchObject({ status: 0, stdout: expect.stringContaining("Usage: pamir cc") });
});

it("without a clang it says what to install, and exits with 2", () => {
  const { status, stderr } = compile("c++", ["x.cpp"], { ...process.env, PATH: "/nowhere" });
  expect(status).toBe(2);
  expect(stderr).toMatch(/no clang of version 19 to 22 is installed: apt install clang-19 .* libc\+\+-19-dev-wasm32/);
});

it("another program in place of clang is named", () => {
  const { status, stderr } = compile("cc", ["x.c"], { ...process.env, PAMIR_CLANG: process.execPath });
  expect(status).toBe(2);
  expect(stderr).toContain(`; ${process.execPath} is no clang: apt install`);
});

describe.skipIf(!HAS_CLANG)("with clang", () => {
  it("compiles several files, with options of the compiler and of the linker, by one command and by several", () => {
    const main = file("main.c", [
      "#include <stdio.h>",
      "int twice(int);",
      'int main(void) { printf("%d\\n", twice(NUMBER)); }',
    ]);
    const other = file("other.c", ["int twice(int n) { return 2 * n; }"]);
    const program = join(inject("folder"), "several.wasm");
    const flags = ["-O2", "-Wall", "-DNUMBER=21", "-Wl,-z,stack-size=131072"];
    expect(compile("cc", [...flags, main, other, "-o", program])).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(run("-n", "1", program)).toEqual({ status: 0, stdout: "[0] 42\n", stderr: "" });
    const objects = [main, other].map((source) => {
      const object = `${source}.o`;
      expect(compile("cc", [...flags.slice(0, 3), "-c", source, "-o", object])).toMatchObject({ status: 0 });
      return object;
    });
    expect(compile("cc", [...objects, "-o", program])).toMatchObject({ status: 0 });
    expect(run("-n", "2", "--no-labels", program)).toMatchObject({ status: 0, stdout: "42\n42\n" });
  });

  it("compiles C++, with its library", () => {
    const main = file("main.cpp", [
      "#include <algorithm>",
      "#include <cstdio>",
      "#include <mpi.h>",
      "#include <vector>",
      "int main(int argc, char **argv) {",
      "  MPI_Init(&argc, &argv);",
      "  std::vector<int> numbers{3, 1, 2};",
      "  std::sort(numbers.begin(), numbers.end());",
      "  int sum = 0;",
      "  MPI_Allreduce(&numbers[2], &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);",
      '  std::printf("%d\\n", sum);',
      "  MPI_Finalize();",
      "}",
    ]);
    const program = join(inject("folder"), "sorted.wasm");
    expect(compile("c++", ["-O2", main, "-o", program])).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(run("-n", "2", "--no-labels", program)).toMatchObject({ status: 0, stdout: "6\n6\n" });
    // Whatever its name is.
    const named = join(inject("folder"), "sorted");
    copyFileSync(program, named);
    expect(run("-n", "2", "--no-labels", named)).toMatchObject({ status: 0, stdout: "6\n6\n" });
  });

  // As newer libraries of WASI are: addresses relative to __memory_base, and in global variables. A program with a memory of
  // its own makes no window.
  it.each(["hidden", "default"])("a program by -fPIC runs in the job's memory, its symbols %s", (visibility) => {
    const source = file("pic.c", [
      "#include <mpi.h>",
      "#include <stdio.h>",
      "int shared = 40, table[2] = {1, 2};",
      "static int own = 7;",
      "extern int absent __attribute__((weak));",
      "static int next(int n) { return n + 1; }",
      "int (*volatile call)(int) = next;",
      "int main(int argc, char **argv) {",
      "  int rank;",
      "  MPI_Win window;",
      "  MPI_Init(&argc, &argv);",
      "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);",
      "  own += rank, shared += own, table[rank & 1] += shared;",
      "  MPI_Win_create(table, sizeof table, sizeof *table, MPI_INFO_NULL, MPI_COMM_WORLD, &window);",
      "  MPI_Win_free(&window);",
      '  printf("%d %d %d %d %d %d\\n", shared, table[0], table[1], own, call(rank), &absent == 0);',
      "  MPI_Finalize();",
      "}",
    ]);
    const program = join(inject("folder"), `pic-${visibility}.wasm`);
    const flags = ["-O2", "-fPIC", `-fvisibility=${visibility}`];
    expect(compile("cc", [...flags, source, "-o", program])).toEqual({ status: 0, stdout: "", stderr: "" });
    const { status, stdout, stderr } = run("-n", "2", program);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout.trim().split("\n").sort()).toEqual(["[0] 47 48 2 7 1 1", "[1] 48 1 50 8 2 1"]);
  });

  it("an error of the compiler is its own, with its exit code", () => {
    const { status, stderr } = compile("cc", [file("wrong.c", ["int main(void) { return x; }"])]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/error: use of undeclared identifier 'x'/);
  });

  it("a function that no library has is an error only once it is called", () => {
    const main = file("absent.c", [
      "#include <stdio.h>",
      "int library_call(int, void *);",
      "int main(int argc, char **argv) {",
      "  if (argc > 1) return library_call(0, argv);",
      '  puts("without it");',
      "}",
    ]);
    const program = join(inject("folder"), "absent.wasm");
    expect(compile("cc", [main, "-o", program])).toMatchObject({ status: 0 });
    expect(run("-n", "1", "--no-labels", program)).toMatchObject({ status: 0, stdout: "without it\n" });
    const { status, stderr } = run("-n", "1", program, "call");
    expect(status).toBe(1);
    expect(stderr).toContain("the program called library_call(), which pamir does not have");
  });

  it("the document's program does what the document says", () => {
    const text = readFileSync("docs/c.md", "utf8");
    const source = /^```c\n([\s\S]*?)^```$/m.exec(text)?.[1] as string;
    // The program that test/pages/bundles.test.ts runs in a page.
    expect(readFileSync("test/c/programs/hello.c", "utf8")).toBe(source);
    const program = join(inject("folder"), "hello.wasm");
    expect(compile("cc", ["-O2", file("hello.c", [source]), "-o", program])).toMatchObject({ status: 0 });
    const { status, stdout } = run("-n", "4", program);
    expect(status).toBe(0);
    expect(stdout.trim().split("\n").sort()).toEqual([0, 1, 2, 3].map((rank) => `[${rank}] rank ${rank} of 4, sum 6`));
  });
});
