// How large `import "pamir"` makes a program: for the test and the bench. @ts-check
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** Hashes in the names of files, of which each change gives others, and so other sizes. */
const HASHES = /-[0-9a-z]{8}(?=[-.])/gi;

/**
 * Bytes, minified and gzipped: of all files that a program loads at first, of those that it may load at all, and of noble.
 * @param {string} entry @param {RegExp} [loaded] names of the files that it loads later, and that count as loaded at first
 */
export async function bundleSizes(entry = "dist/index.js", loaded) {
  const { outputFiles, metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "esm",
    splitting: true,
    outdir: "bundle",
    metafile: true,
    write: false,
    // One file imports another for its order alone, and has nothing to do at its start.
    logOverride: { "ignored-bare-import": "silent" },
  });
  const sizes = new Map(
    outputFiles.map(({ path, text }) => [
      path.split("/").pop(),
      gzipSync(text.replace(HASHES, "-0"), { level: 9 }).length,
    ]),
  );
  const sum = (/** @type {Iterable<string>} */ names) =>
    [...names].reduce((bytes, name) => bytes + (sizes.get(name.split("/").pop()) ?? 0), 0);
  const files = Object.keys(metafile.outputs);
  const first = new Set([entry.replace("dist", "bundle"), ...files.filter((name) => loaded?.test(name))]);
  for (const name of first) {
    for (const { path, kind } of metafile.outputs[name]?.imports ?? [])
      if (kind === "import-statement") first.add(path);
  }
  return { first: sum(first), whole: sum(files), noble: sum(files.filter((name) => name.includes("noble-"))) };
}

/** The parts of what `import "pamir"` loads at first, by their sources. The first that fits counts. @type {[string, RegExp][]} */
const PARTS = [
  ["messages, lanes, buffers", /protocol\/eager|^src\/transport|core\/message/],
  ["one-sided operations, regions", /protocol\/rma|^src\/memory|core\/region/],
  ["payloads that their receiver takes", /protocol\/rendezvous/],
  ["calls, errors of other tasks", /protocol\/(call|served)|core\/(thrown|error|task-errors)/],
  ["`codecs.clone()`", /core\/clone/],
  ["client, contexts, waits", /^src\/pami|^src\/protocol|^src\/core/],
  ["sleeping, liveness", /^src\/node/],
  ["dumps, traces, debug mode", /^src\/observe/],
  ["`attach()`, `info()`, the host", /^src\/(start|support|generated)|^src\/index/],
  ["kernels, layout", /^src\/kernel|^assembly/],
];

/** Kilobytes of each part, of so many gzipped bytes in all: a part's share of what is minified. @param {number} bytes */
export async function partSizes(bytes) {
  const entry = "src/index.ts";
  const { metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "esm",
    splitting: true,
    outdir: "bundle",
    external: ["node:*"],
    logLevel: "silent",
    metafile: true,
    write: false,
  });
  const { outputs } = metafile;
  const first = new Set(Object.keys(outputs).filter((name) => outputs[name]?.entryPoint === entry));
  for (const name of first)
    for (const { path, kind } of outputs[name]?.imports ?? []) if (kind === "import-statement") first.add(path);
  const sizes = new Map(PARTS.map(([part]) => [part, 0]));
  for (const name of first)
    for (const [source, { bytesInOutput }] of Object.entries(outputs[name]?.inputs ?? {})) {
      const [part] = PARTS.find(([, fits]) => fits.test(source)) ?? [source];
      sizes.set(part, (sizes.get(part) ?? 0) + bytesInOutput);
    }
  const all = [...sizes.values()].reduce((sum, size) => sum + size);
  return new Map([...sizes].map(([part, size]) => [part, (size / all) * (bytes / 1000)]));
}
