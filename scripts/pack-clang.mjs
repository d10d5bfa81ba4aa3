// Packs clang and lld as WebAssembly (@yowasp/clang) for a page: gzipped, with the headers and libraries that programs in C need,
// and pamir's own. The package's other 27 MB are for C++ and other machines. @ts-check
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url));
const clang = join(root, "node_modules", "@yowasp", "clang");
/** Packing takes seconds: it is done once for each version. */
const cache = join(root, "node_modules", ".cache", "pamir");
const CORES = ["llvm.core.wasm", "llvm.core2.wasm", "llvm.core3.wasm", "llvm.core4.wasm"];
const RESOURCES = "llvm-resources.tar";
const BLOCK = 512;
/** What a program in C needs of the package's `/usr`. */
const KEPT =
  /^(?:include\/(?:__)?(?:std|float|limits|inttypes|iso646|tgmath|varargs|wasm_simd128)[^/]*\.h|include\/wasm32-wasip1\/.*|lib\/wasm32-wasip1\/(?:crt1-command\.o|lib(?:c|m|c-printscan-\S+|wasi-emulated-\S+)\.a)|lib\/wasm32-unknown-wasip1\/libclang_rt\.builtins\.a)$/;

/** @param {Buffer} header @param {number} start @param {number} length */
function field(header, start, length) {
  return header.toString("latin1", start, start + length).replace(/\0.*/s, "");
}

/** A file of an archive, as ustar has it, or a folder. @param {string} name @param {Buffer} [contents] of a file */
function entry(name, contents = Buffer.alloc(0), type = contents.length > 0 ? "0" : "5") {
  const header = Buffer.alloc(BLOCK);
  const size = contents.length.toString(8).padStart(11, "0");
  for (const [at, text] of /** @type {[number, string][]} */ ([
    [0, name],
    [100, "0000644"],
    [124, size],
    [136, "00000000000"],
    [148, "        "],
    [156, type],
    [257, "ustar"],
    [263, "00"],
  ]))
    header.write(text, at, "latin1");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return Buffer.concat([header, contents, Buffer.alloc(-contents.length & (BLOCK - 1))]);
}

/** The archive of headers and libraries. @param {Buffer} all that of the package */
function sysroot(all) {
  const parts = [];
  for (let at = 0; at + BLOCK <= all.length && all[at] !== 0; ) {
    const header = all.subarray(at, at + BLOCK);
    const end = at + BLOCK + Math.ceil(Number.parseInt(field(header, 124, 12), 8) / BLOCK) * BLOCK;
    const name = field(header, 0, 100);
    if (field(header, 156, 1) === "5" ? /^(?:include|lib)(?:\/wasm32|\/?$)/.test(name) : KEPT.test(name))
      parts.push(all.subarray(at, end));
    at = end;
  }
  const own = (/** @type {string} */ path) => readFileSync(join(root, "include", path));
  parts.push(entry("include/mpi.h", own("mpi.h")), entry("lib/pamir"));
  parts.push(entry("lib/pamir/arena.c", own("lib/arena.c")), Buffer.alloc(2 * BLOCK));
  return Buffer.concat(parts);
}

/**
 * Puts the compiler into a folder.
 * @param {string} folder
 * @returns {number} how many bytes a page loads; 0: the package is not installed
 */
export function packClang(folder) {
  if (!existsSync(join(clang, "package.json"))) return 0;
  const { version } = JSON.parse(readFileSync(join(clang, "package.json"), "utf8"));
  const cores = join(cache, `clang-${version}`);
  mkdirSync(cores, { recursive: true });
  mkdirSync(folder, { recursive: true });
  for (const name of CORES) {
    const packed = join(cores, `${name}.bin`);
    if (!existsSync(packed)) writeFileSync(packed, gzipSync(readFileSync(join(clang, "gen", name))));
    cpSync(packed, join(folder, `${name}.bin`));
  }
  writeFileSync(
    join(folder, `${RESOURCES}.bin`),
    gzipSync(sysroot(readFileSync(join(clang, "gen", RESOURCES))), { level: 9 }),
  );
  cpSync(join(clang, "gen", "bundle.js"), join(folder, "bundle.js"));
  // Where its license stands.
  cpSync(join(clang, "README.md"), join(folder, "README.md"));
  return [...CORES, RESOURCES].reduce((sum, name) => sum + statSync(join(folder, `${name}.bin`)).size, 0);
}
