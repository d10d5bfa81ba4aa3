// @ts-check
// clang and lld as WebAssembly, in a worker: @yowasp/clang, packed by scripts/pack-clang.mjs. It compiles as `pamir cc` does.

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */
/** @typedef {Error & { code?: number, files?: object }} Exit */

const FOLDER = new URL("./c/clang/", import.meta.url);
const TARGET = "--target=wasm32-wasip1";
/** As LINK_FLAGS of src/cli/cc.ts, and one more. */
const LINK_FLAGS = [
  ...["--import-memory", "--emit-relocs", "--stack-first", "-z", "stack-size=1048576", "--export-table"],
  ...["--allow-undefined", "--strip-debug"],
  // Weak in libc, where programs open files: this lld emits no relocations of a weak function that nothing defines.
  "--undefined=__wasilibc_find_relpath_alloc",
].flatMap((flag) => ["-Xlinker", flag]);

/** Names of main() in an object. lld fails an assertion without it, as it is weak in libc. */
const MAIN = /__main_(?:void|argc_argv)|\bmain\b/;

let loaded = 0;
const fetched = self.fetch;

/** The package fetches its parts by their names: here they are packed. @param {string | URL | Request} part */
self.fetch = async (part) => {
  const name = new URL(String(part)).pathname.split("/").pop();
  const response = await fetched(new URL(`${name}.bin`, FOLDER));
  if (!response.ok || response.body === null) throw new Error(`${name}.bin can't be loaded: status ${response.status}`);
  const counted = new TransformStream({
    transform(/** @type {Bytes} */ chunk, controller) {
      loaded += chunk.length;
      self.postMessage({ loaded });
      controller.enqueue(chunk);
    },
  });
  const bytes = response.body.pipeThrough(counted).pipeThrough(new DecompressionStream("gzip"));
  return new Response(bytes, { headers: { "content-type": "application/wasm" } });
};

/** @type {Promise<{ runClang: Function, arena: Bytes }> | undefined} */
let clang;

async function load() {
  const { runClang } = await import(new URL("bundle.js", FOLDER).href);
  // Without a function of one's own it tells the console of each part.
  await runClang(null, {}, { fetchProgress() {} });
  const { files, text } = await run(runClang, ["-O2", "-c", "/usr/lib/pamir/arena.c", "-o", "arena.o"], {});
  if (files["arena.o"] === undefined) throw new Error(text);
  self.postMessage({ isReady: true });
  return { runClang, arena: files["arena.o"] };
}

/** @param {Function} runClang @param {string[]} args @param {object} files */
async function run(runClang, args, files) {
  const decoder = new TextDecoder();
  let text = "";
  const add = (/** @type {Uint8Array | null} */ bytes) => {
    if (bytes !== null) text += decoder.decode(bytes, { stream: true });
  };
  const options = { stdout: add, stderr: add, decodeASCII: false };
  try {
    return { files: await runClang(["clang", TARGET, ...args], files, options), text };
  } catch (error) {
    // A trap, as where its own memory is full.
    if (error instanceof WebAssembly.RuntimeError) {
      throw new Error(`clang itself has failed: ${text.trim() || error.message}`);
    }
    // The compiler has ended with an error, of which it has told.
    if (/** @type {Exit} */ (error).files === undefined || text === "") throw error;
    return { files: {}, text };
  }
}

/** @param {string} file @param {string} source */
async function compile(file, source) {
  clang ??= load();
  const { runClang, arena } = await clang;
  const compiled = await run(runClang, ["-O2", "-Wall", "-c", file, "-o", "program.o"], { [file]: source });
  const object = compiled.files["program.o"];
  if (object === undefined) return { text: compiled.text };
  if (!MAIN.test(new TextDecoder("latin1").decode(object))) {
    return { text: `${compiled.text}${file}:1:1: error: this program has no function main()\n` };
  }
  const objects = { "program.o": object, "arena.o": arena };
  const args = [...LINK_FLAGS, "program.o", "arena.o", "-lm", "-o", "program.wasm"];
  const linked = await run(runClang, args, objects);
  return { program: linked.files["program.wasm"], text: compiled.text + linked.text };
}

self.onmessage = ({ data: { file, source } }) => {
  compile(file, source).then(
    (made) => self.postMessage(made),
    (error) => self.postMessage({ failed: `${error?.message ?? error}` }),
  );
};
