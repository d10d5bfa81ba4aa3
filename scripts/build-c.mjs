// Compiles the programs that the tests and the demo run: test/c/programs/*.c, test/c/guests/*.c, demo/c/programs/*.c, and
// examples/c/*.c and *.cpp, to test/c/built/*.wasm. The binaries are committed, so that `npm test` and `npm run demo` need no
// compiler. `--check` compiles, and compares with what is committed.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, parse } from "node:path";

process.chdir(new URL("..", import.meta.url).pathname);

/** Programs of their own memory, in which pamir is a guest, are compiled without a library. */
const GUESTS = "test/c/guests";
const SOURCES = ["test/c/programs", "examples/c", "demo/c/programs", GUESTS];
const BUILT = "test/c/built";
const MAKER = "made-by.txt";
const RUST_PROGRAM = "pi.wasm";
const RUST_MAKER = "pi-made-by.txt";
const VERSIONS = [19, 20, 21, 22];
/** Where Debian's and Fedora's packages, and an SDK that WASI_SYSROOT names, have wasi-libc. */
const SYSROOTS = [process.env.WASI_SYSROOT, "/usr", "/usr/share/wasi-sysroot"].filter((path) => path !== undefined);
const isCheck = process.argv.includes("--check");

/** @param {string} command @param {readonly string[]} args @returns {string} standard output */
function run(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
  if (status === 0) return stdout;
  process.stderr.write(`${command} ${args.join(" ")}\n${error?.message ?? stderr}\n`);
  process.exit(1);
}

/** @param {string} message @returns {never} */
function give(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const version = VERSIONS.find((one) =>
  [`clang-${one}`, `wasm-ld-${one}`].every((tool) => spawnSync(tool, ["--version"]).status === 0),
);
if (version === undefined)
  give("build-c: no clang: apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32");
const sysroot = SYSROOTS.find((path) => existsSync(join(path, "lib/wasm32-wasi/libc.a")));
if (sysroot === undefined) give("build-c: no lib/wasm32-wasi/libc.a: apt-get install wasi-libc, or set WASI_SYSROOT");
const libraries = join(sysroot, "lib/wasm32-wasi");
const resources = run(`clang-${version}`, ["-print-resource-dir"]).trim();
const builtins = join(resources, "lib/wasi/libclang_rt.builtins-wasm32.a");
if (!existsSync(builtins)) give(`build-c: no ${builtins}: apt-get install libclang-rt-${version}-dev-wasm32`);

// Other tools make other bytes. The binaries themselves name only what made their first library.
const hash = createHash("sha256")
  .update(readFileSync(join(libraries, "libc.a")))
  .update(readFileSync(builtins));
const maker = `${run(`clang-${version}`, ["--version"]).split("\n")[0]}, libraries ${hash.digest("hex").slice(0, 16)}\n`;
if (!isCheck) writeFileSync(join(BUILT, MAKER), maker);
const committed = readFileSync(join(BUILT, MAKER), "utf8");
// Other tools make other bytes: then all is compiled, and nothing compared.
const isSameMaker = committed === maker;
if (!isSameMaker)
  process.stdout.write(`not compared: the committed programs were made by ${committed}here is ${maker}`);

const folder = mkdtempSync(join(tmpdir(), "pamir-c-"));
const wrong = [];
try {
  const sources = SOURCES.flatMap((path) =>
    readdirSync(path)
      .filter((name) => /\.(c|cpp)$/.test(name))
      .sort()
      .map((name) => `${path}/${name}`),
  );
  for (const source of sources) {
    const name = `${parse(source).name}.wasm`;
    const bytes = compile(source, join(folder, name));
    const target = join(BUILT, name);
    if (!isCheck) writeFileSync(target, bytes);
    else if (!existsSync(target)) wrong.push(`${target} is absent`);
    else if (isSameMaker && !bytes.equals(readFileSync(target))) wrong.push(`${target} is not what ${source} gives`);
  }
  wrong.push(...buildRust(folder));
  const known = new Set([MAKER, RUST_PROGRAM, RUST_MAKER, ...sources.map((source) => `${parse(source).name}.wasm`)]);
  for (const name of readdirSync(BUILT)) if (!known.has(name)) wrong.push(`${BUILT}/${name} has no source`);
  process.stdout.write(`${sources.length} programs by clang ${version}\n`);
} finally {
  rmSync(folder, { recursive: true });
}
if (wrong.length > 0) give(wrong.join("\n"));

/**
 * The program in Rust, by Debian's compiler; it is left as it is where that is missing.
 * @param {string} folder @returns {string[]} what is wrong
 */
function buildRust(folder) {
  const has = (/** @type {string} */ command) => spawnSync(command, ["--version"]).status === 0;
  const rustc = "/usr/bin/rustc";
  const sysroot = has(rustc) ? run(rustc, ["--print", "sysroot"]).trim() : "";
  if (!existsSync(join(sysroot, "lib/rustlib/wasm32-wasi")) || !has("wasm-ld-14")) {
    process.stdout.write("not built: the program in Rust: apt-get install rustc libstd-rust-dev-wasm32 lld-14\n");
    return [];
  }
  const library = join(folder, "libpamir_mpi.rlib");
  const target = join(folder, RUST_PROGRAM);
  const flags = [
    "--target",
    "wasm32-wasi",
    "--edition",
    "2021",
    "-O",
    ...["--remap-path-prefix", `${folder}=.`],
    ...["--remap-path-prefix", `${process.cwd()}=.`],
  ];
  run(rustc, [...flags, "--crate-type", "rlib", "--crate-name", "pamir_mpi", "include/rust/src/lib.rs", "-o", library]);
  const link = ["-C", "linker=wasm-ld-14", "-C", "strip=debuginfo", "--extern", `pamir_mpi=${library}`];
  run(rustc, [...flags, ...link, "test/c/programs/pi.rs", "-o", target]);
  const [bytes, committed] = [target, join(BUILT, RUST_PROGRAM)].map((path) =>
    existsSync(path) ? readFileSync(path) : undefined,
  );
  const maker = run(rustc, ["--version"]);
  if (!isCheck && bytes !== undefined) {
    writeFileSync(join(BUILT, RUST_PROGRAM), bytes);
    writeFileSync(join(BUILT, RUST_MAKER), maker);
    return [];
  }
  if (readFileSync(join(BUILT, RUST_MAKER), "utf8") !== maker) return [];
  return committed !== undefined && bytes?.equals(committed)
    ? []
    : [`${BUILT}/${RUST_PROGRAM} is not what pi.rs gives`];
}

/** @param {string} source @param {string} target @returns {Buffer} */
function compile(source, target) {
  if (source.startsWith(GUESTS)) return compileGuest(source, target);
  // As a user compiles them; the others are tests of WASI alone, in a memory of their own.
  if (/^#include <(?:mpi|pami)\.h>/m.test(readFileSync(source, "utf8"))) {
    process.env.PAMIR_CLANG = `clang-${version}`;
    const flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-Wl,--strip-debug"];
    const command = source.endsWith(".cpp") ? "c++" : "cc";
    run(process.execPath, ["dist/cli.js", command, ...flags, source, "-o", target]);
    return readFileSync(target);
  }
  const object = `${target}.o`;
  // The path from the root: assert() has it in the binary.
  const warnings = ["-Wall", "-Wextra", "-Werror"];
  run(`clang-${version}`, [
    "--target=wasm32-wasi",
    `--sysroot=${sysroot}`,
    "-O2",
    ...warnings,
    "-c",
    source,
    "-o",
    object,
  ]);
  // Not by clang, which runs wasm-opt where there is one: the relocations would be void.
  run(`wasm-ld-${version}`, [
    ...["--import-memory", "--emit-relocs", "--strip-debug", "--stack-first", "-z", "stack-size=65536"],
    ...[`-L${libraries}`, join(libraries, "crt1-command.o"), object, "-lc", builtins, "-o", target],
  ]);
  return readFileSync(target);
}

/**
 * A threaded program: wasi-libc here has no atomics, and so it uses none of it but headers.
 * @param {string} source @param {string} target @returns {Buffer}
 */
function compileGuest(source, target) {
  const object = `${target}.o`;
  run(`clang-${version}`, [
    ...["--target=wasm32-wasi", `--sysroot=${sysroot}`, "-Iinclude", "-O2", "-Wall", "-Wextra", "-Werror"],
    ...["-ffreestanding", "-matomics", "-mbulk-memory", "-c", source, "-o", object],
  ]);
  run(`wasm-ld-${version}`, [
    ...["--no-entry", "--import-memory", "--shared-memory", "--max-memory=268435456", "--strip-debug"],
    ...["--export-table", "--export=__stack_pointer", object, "-o", target],
  ]);
  return readFileSync(target);
}
