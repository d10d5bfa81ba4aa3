// docs/recipes/cmake.md, make.md and guest.md: their files, compiled and run by their commands; and Emscripten, as docs/c.md says.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, inject, it } from "vitest";
import { run } from "../support/run-command.js";

const has = (...tools: string[]): boolean =>
  process.env.PAMIR_REQUIRE_LAUNCHERS !== undefined ||
  tools.every((tool) => spawnSync(tool, ["--version"]).status === 0);
const HAS_CMAKE = has("clang-19", "cmake", "make");
const HAS_MAKE = has("clang-19", "make");
const HAS_GUEST = has("clang-19", "wasm-ld-19");
if (!HAS_CMAKE) console.log("not run: the recipe for CMake, since there is no clang-19, cmake or make");

/** Parts of a recipe by their headings: its file, and the number of its block of commands. */
const PARTS: Readonly<Record<string, readonly [string, number]>> = {
  "Recipes: a guest": ["guest", 0],
  "With Emscripten": ["guest", 1],
};

/** Milliseconds: several compilers take their time on a busy machine. */
const timeout = 240_000;

/** A folder with the files of a recipe, and the package where npm installs it; the commands of one of its blocks. */
function recipe(heading: string): { folder: string; commands: string } {
  const [name, block] = PARTS[heading] ?? [heading, -1];
  const text = readFileSync(`docs/recipes/${name}.md`, "utf8");
  const folder = mkdtempSync(join(inject("folder"), `${name}-`));
  for (const [, code = "", file = ""] of text.matchAll(/^```\w+\n((?:\/\/|#) (\S+)\n[\s\S]*?)^```$/gm))
    writeFileSync(join(folder, file), code);
  mkdirSync(join(folder, "node_modules/.bin"), { recursive: true });
  symlinkSync(resolve("."), join(folder, "node_modules/pamir"));
  symlinkSync(resolve("dist/cli.js"), join(folder, "node_modules/.bin/pamir"));
  const [, commands = ""] = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].at(block) ?? expect.fail(name);
  return { folder, commands };
}

function shell(folder: string, commands: string) {
  return spawnSync("bash", ["--norc", "-euc", commands], {
    cwd: folder,
    encoding: "utf8",
    timeout,
    // npm of the tests would look for the tests' own package.
    env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}`, npm_config_local_prefix: folder },
  });
}

it.skipIf(!HAS_CMAKE)("cmake.md: a library in C, a program in C++, and a test", { timeout }, () => {
  const { folder, commands } = recipe("cmake");
  const { status, stdout, stderr } = shell(folder, commands);
  expect(status, stdout + stderr).toBe(0);
  const lines = stdout.split("\n");
  for (const rank of [0, 1, 2, 3]) expect(lines).toContain(`[${rank}] rank ${rank} of 4: after ${(rank + 3) % 4}`);
  expect(stdout).toContain("100% tests passed, 0 tests failed out of 1");
  expect(stderr).not.toMatch(/warning/i);
});

it.skipIf(!HAS_MAKE)("make.md: several files, with the compiler as a variable", { timeout }, () => {
  const { folder, commands } = recipe("make");
  const { status, stdout, stderr } = shell(folder, commands);
  expect(status, stdout + stderr).toBe(0);
  expect(stdout).toContain("[0] sum of roots: 4.146264\n");
  expect(stderr).toBe("");
});

// No package of the tests' machine has it: it is never required.
const HAS_EMSCRIPTEN = spawnSync("emcc", ["--version"]).status === 0;
if (!HAS_EMSCRIPTEN) console.log("not run: Emscripten, since there is no emcc");

it.skipIf(!HAS_EMSCRIPTEN).each(["hello", "collectives", "nonblocking"])("c.md: Emscripten compiles %s.c", (name) => {
  const [, command = ""] = /^(emcc .*) hello\.c -o/m.exec(readFileSync("docs/c.md", "utf8")) ?? expect.fail("no emcc");
  const folder = mkdtempSync(join(inject("folder"), "emcc-"));
  const program = join(folder, `${name}.wasm`);
  const made = shell(
    folder,
    `mpi=${resolve("include")}; ${command} ${resolve(`test/c/programs/${name}.c`)} -o ${program}`,
  );
  expect(made).toMatchObject({ status: 0, stdout: "" });
  const { status, stdout, stderr } = run("-n", "3", "--no-labels", program);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const lines = stdout.trim().split("\n");
  expect(lines.length).toBeGreaterThan(2);
  for (const line of lines) expect(line).toMatch(/^rank \d of 3, sum 3$|: 3 of 3$/);
});

const GUESTS = ["thread 0: thread 3 has put", ...[1, 2, 3].map((task) => `thread ${task}: thread ${task - 1} has put`)];

it.skipIf(!HAS_GUEST)("guest.md: threads in C, in whose memory pamir is a guest", { timeout }, () => {
  const { folder, commands } = recipe("Recipes: a guest");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const { status, stdout, stderr } = shell(folder, commands);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout.trim().split("\n").sort()).toEqual(["the program has the 8388608 bytes again", ...GUESTS]);
});

it.skipIf(!HAS_EMSCRIPTEN)("guest.md: pthreads of Emscripten", { timeout }, () => {
  const { folder, commands } = recipe("With Emscripten");
  const { status, stdout, stderr } = shell(folder, commands);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout.trim().split("\n").sort()).toEqual(GUESTS);
});
