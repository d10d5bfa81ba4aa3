// `pamir cc` and `pamir c++`: compile and link programs for `pamir run`, by a clang that is installed, with the flags that the
// loader needs. All other arguments are clang's own.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, extname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { pathOf } from "./commands.js";
import { say, UsageError } from "./usage.js";

const HELP = `pamir cc, pamir c++: compile programs in C and C++ for \`pamir run\`; the arguments are those of clang

Usage: pamir cc [OPTION]… FILE… [-o PROGRAM.wasm]
       pamir c++ [OPTION]… FILE… [-o PROGRAM.wasm]

They call clang 19 to 22 with lld, for WebAssembly with WASI, and add what the loader needs: the memory is imported, relocations
stay, the stack (1 MiB) comes first. \`#include <mpi.h>\` is found. So \`make CC="pamir cc"\` works. A larger stack:
-Wl,-z,stack-size=BYTES. There are no threads, no exceptions of C++ (-fno-exceptions is set), no setjmp().

Variables: PAMIR_CLANG, the clang to take (default: the newest of clang-22 to clang-19, then clang).

Exit codes: clang's own; 2 no fitting clang is installed.
`;

const NEWEST = 22;
const OLDEST = 19;
/** What is installed where something lacks; names of Debian's packages. */
const INSTALL = (version: number, isCxx: boolean): string =>
  `apt install clang-${version} lld-${version} wasi-libc libclang-rt-${version}-dev-wasm32${isCxx ? ` libc++-${version}-dev-wasm32` : ""}`;
const SOURCES = new Set([".c", ".cc", ".cp", ".cpp", ".cxx", ".c++", ".C", ".i", ".ii", ".s", ".S", ".ll"]);
/** Options that end before the linker. */
const NO_LINK = new Set(["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--version", "-v", "-###", "--help"]);
/** Options whose value is the next argument, of the compiler and of the linker. */
const WITH_VALUE = new Set([
  "-o",
  "-I",
  "-D",
  "-U",
  "-L",
  "-l",
  "-x",
  "-include",
  "-isystem",
  "-idirafter",
  "-iquote",
  "-MF",
  "-MT",
  "-MQ",
  "-Xlinker",
  "-Xclang",
  "-mllvm",
  "-T",
  "-u",
  "-z",
  "-e",
]);
/** Options of the linker alone: the compiler warns that it does not use them. */
const OF_LINKER = /^-(?:L|l|Wl,|Xlinker|T|u|z|e|s$|static$|nostdlib|nodefaultlibs|nostartfiles)/;
const INCLUDE = fileURLToPath(new URL("../include", import.meta.url));
const TARGET = "--target=wasm32-wasi";
const LINK_FLAGS = [
  "--import-memory",
  "--emit-relocs",
  "--stack-first",
  "-z",
  "stack-size=1048576",
  "--export-table",
  "--allow-undefined",
];

/** A clang that is installed. */
interface Clang {
  readonly path: string;
  readonly version: number;
}

export const cc = (args: string[]): number => compile(args, false);
export const cxx = (args: string[]): number => compile(args, true);

function compile(args: string[], isCxx: boolean): number {
  if (args.length === 0 || args[0] === "--help") {
    process.stdout.write(HELP);
    return 0;
  }
  const clang = findClang(isCxx);
  const flags = [TARGET, `-I${INCLUDE}`, ...(isCxx ? ["-fno-exceptions"] : [])];
  if (args.some((arg) => NO_LINK.has(arg))) return run(clang.path, [...flags, ...args]);
  checkLibraries(clang, isCxx);
  const folder = mkdtempSync(join(tmpdir(), "pamir-cc-"));
  try {
    return compileAndLink(clang, args, flags, { folder, isCxx });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** In two steps: with -O, clang's driver runs wasm-opt behind the linker where binaryen is installed, which breaks relocations. */
function compileAndLink(
  clang: Clang,
  args: readonly string[],
  flags: readonly string[],
  { folder, isCxx }: { readonly folder: string; readonly isCxx: boolean },
): number {
  const compiler: string[] = [];
  const linker: string[] = [];
  const objects: string[] = [];
  const sources: { readonly source: string; readonly object: string }[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] as string;
    const given = WITH_VALUE.has(arg) ? [arg, args[++i] as string] : [arg];
    if (!arg.startsWith("-") && SOURCES.has(extname(arg))) {
      const object = join(folder, `${sources.length}-${basename(arg)}.o`);
      sources.push({ source: arg, object });
      linker.push(object);
      objects.push(object);
    } else if (!arg.startsWith("-")) linker.push(arg);
    else if (arg === "-o" || OF_LINKER.test(arg)) linker.push(...given);
    else if (!/^-O/.test(arg)) {
      compiler.push(...given);
      // Options such as -g and -fuse-ld are for both.
      if (/^-(?:g|f|m|std)/.test(arg)) linker.push(...given);
    } else compiler.push(...given);
  }
  for (const { source, object } of sources) {
    const code = run(clang.path, [...flags, ...compiler, "-c", source, "-o", object]);
    if (code !== 0) return code;
  }
  const arena = join(folder, "arena.o");
  const code = run(clang.path, [TARGET, "-O2", "-c", join(INCLUDE, "lib/arena.c"), "-o", arena]);
  if (code !== 0) return code;
  const output = linker.includes("-o") ? [] : ["-o", "a.out"];
  const libraries = isCxx ? ["-lc++", "-lc++abi"] : [];
  const wanted = LINK_FLAGS.flatMap((flag) => ["-Xlinker", flag]);
  return run(clang.path, [TARGET, ...wanted, ...linker, arena, ...libraries, ...output]);
}

/** @throws UsageError no fitting clang is installed */
function findClang(isCxx: boolean): Clang {
  const given = process.env.PAMIR_CLANG;
  const versions = Array.from({ length: NEWEST - OLDEST + 1 }, (_, index) => NEWEST - index);
  const names = given ? [given] : [...versions.map((version) => `clang-${version}`), "clang"];
  let found = "";
  for (const name of names) {
    const path = isAbsolute(name) ? name : pathOf(name);
    if (path === undefined) continue;
    const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8" });
    const version = Number(/clang version (\d+)/.exec(stdout ?? "")?.[1]);
    if (version >= OLDEST && version <= NEWEST) return { path, version };
    found = `; ${path} is ${Number.isNaN(version) ? "no clang" : `version ${version}`}`;
  }
  throw new UsageError(`no clang of version ${OLDEST} to ${NEWEST} is installed${found}: ${INSTALL(OLDEST, isCxx)}`);
}

/** @throws UsageError the C library, or what clang links besides, is not installed */
function checkLibraries({ path, version }: Clang, isCxx: boolean): void {
  const find = (option: string): string => spawnSync(path, [TARGET, option], { encoding: "utf8" }).stdout.trim();
  const needed = {
    "wasi-libc": find("-print-file-name=libc.a"),
    "compiler-rt for wasm32": find("-print-libgcc-file-name"),
    ...(isCxx ? { "libc++ for wasm32": find("-print-file-name=libc++.a") } : {}),
  };
  for (const [what, file] of Object.entries(needed)) {
    if (!existsSync(file)) throw new UsageError(`${what} is not installed: ${INSTALL(version, isCxx)}`);
  }
}

function run(program: string, args: readonly string[]): number {
  const { status, error } = spawnSync(program, args, { stdio: "inherit" });
  if (error !== undefined) say(`pamir cc: ${program} can't be started: ${error.message}`);
  return status ?? 1;
}
