// Programs in C by WASI: what a program writes, and how it ends. scripts/build-c.mjs makes the binaries.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { isAbort } from "../../src/c/exit.js";
import { hostFolder } from "../../src/c/wasi/host-files.js";
import { MemoryFolder } from "../../src/c/wasi/memory-files.js";
import { runProgram } from "./run-program.js";

describe("a program", () => {
  it("has its arguments and variables", () => {
    const { out, code } = runProgram("process", {
      args: ["env", "with space", "grüße", ""],
      env: { NAME: "a=b", EMPTY: "" },
    });
    expect(out).toBe("0: process\n1: env\n2: with space\n3: grüße\n4: \nNAME=a=b EMPTY= NONE=(none)\natexit\n");
    expect(code).toBe(0);
  });

  it.each([
    ["nested", 7, true],
    ["return", 3, true],
    ["_Exit", 9, false],
  ])("that ends by %s has exit code %i", (how, expected, atExit) => {
    const { out, code } = runProgram("process", { args: [how] });
    expect(code).toBe(expected);
    expect(out.endsWith("atexit\n")).toBe(atExit);
  });

  it("that calls abort() ends with a trap that isAbort() knows, and another trap is none", () => {
    const aborted = runProgram("process", { args: ["abort"] });
    expect(aborted).toMatchObject({ code: undefined, error: expect.any(WebAssembly.RuntimeError) });
    expect(isAbort(aborted.error)).toBe(true);
    const trapped = runProgram("process", { args: ["trap"] });
    expect(trapped.error).toBeInstanceOf(WebAssembly.RuntimeError);
    expect(isAbort(trapped.error)).toBe(false);
  });

  it.each([
    ["unreachable executed\nabort@http://host/x.js:1:2 line 3 > WebAssembly.Module:wasm-function[3]:0x1", true],
    ["program.abort@http://host/program.wasm:wasm-function[3]:0x1\nmain@wasm:1", true],
    ["RuntimeError: unreachable\n    at abort (wasm://wasm/1f:wasm-function[3]:0x1)", true],
    ["RuntimeError: unreachable\n    at x.wasm.abort_job (wasm://wasm/1f:wasm-function[3]:0x1)", false],
    [
      "RuntimeError: unreachable\n    at x.wasm.f (wasm://wasm/1f:wasm-function[3]:0x1)\n    at abort (wasm://2)",
      false,
    ],
  ])("has aborted, as the stack %j says: %s", (stack, expected) => {
    expect(isAbort(Object.assign(new WebAssembly.RuntimeError("unreachable"), { stack }))).toBe(expected);
    expect(isAbort(Object.assign(new Error("unreachable"), { stack }))).toBe(false);
  });

  it("sleeps, and has a clock and the date", () => {
    const { out, code } = runProgram("process", { args: ["clocks"] });
    expect(code).toBe(0);
    expect(out).toContain("slept 20 ms or more\nresolution 0\n");
    const [, whole, exact] = /wall (\d+) ([\d.]+)/.exec(out) as RegExpExecArray;
    expect(Math.abs(Number(exact) - Date.now() / 1000)).toBeLessThan(60);
    expect(Math.abs(Number(whole) - Number(exact))).toBeLessThan(2);
  });

  it("has random numbers", () => {
    const { out } = runProgram("process", { args: ["chance"] });
    expect(out).toContain("getentropy 0\ndrawn 1\nrand repeats 1\n");
  });

  it("ends with what its host throws", () => {
    const gone = new Error("the job has ended");
    const host = {
      write: () => {
        throw gone;
      },
    };
    expect(runProgram("process", { host }).error).toBe(gone);
  });
});

test("a program writes each line at once, and reads numbers, words and lines", () => {
  const { out, err, writes, code } = runProgram("streams", { input: "1 2 3\n-7 word and more\nlast" });
  expect({ err, code }).toEqual({ err: "error 1\n", code: 0 });
  expect(out).toBe(
    [
      "terminal 1 1 1",
      "half a line, and its end",
      "4 numbers, sum -1",
      "word word",
      "line of 10 bytes",
      "line of 4 bytes",
      "end of input 1",
      "lseek -1 Invalid seek",
      "poll 1 1",
      "closed -1 Bad file descriptor",
      "no newline at the end",
    ].join("\n"),
  );
  expect(writes.slice(0, 3)).toEqual([
    [1, "terminal 1 1 1\n"],
    [2, "error 1\n"],
    [1, "half a line, and its end\n"],
  ]);
});

test("a program reads no input", () => {
  expect(runProgram("streams").out).toContain("0 numbers, sum 0\nend of input 1\n");
});

describe("a program with files", () => {
  // As `gcc -O1 -D_GNU_SOURCE` and glibc of Linux give it.
  const expected = readFileSync(join(import.meta.dirname, "programs", "files.txt"), "utf8");

  it.each([".", "/", "./"])("in memory, as %s, writes what the same program writes natively", (path) => {
    const folder = MemoryFolder.of({ "given.txt": "given" }, () => Date.now());
    const { out, code } = runProgram("files", { folders: [{ path, folder }] });
    expect(out).toBe(expected);
    expect(code).toBe(0);
    expect(folder.contents("b.bin")?.length).toBe(10);
  });

  it.each([".", "/"])("of the host, as %s, writes the same", (path) => {
    const root = mkdtempSync(join(tmpdir(), "pamir-wasi-"));
    writeFileSync(join(root, "given.txt"), "given");
    const { out, code } = runProgram("files", { folders: [{ path, folder: hostFolder(root) }] });
    expect(out).toBe(expected);
    expect(code).toBe(0);
    expect(readFileSync(join(root, "b.bin")).length).toBe(10);
    rmSync(root, { recursive: true });
  });

  it("finds nothing without folders", () => {
    expect(runProgram("files").out).toMatch(/^given.txt: Capabilities insufficient\n/);
  });
});
