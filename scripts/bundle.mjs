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
