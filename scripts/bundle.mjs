// How large `import "pamir"` makes a program: for the test and the bench. @ts-check
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** Bytes, minified and gzipped: of all files that a program loads at first, and of those that it may load at all. */
export async function bundleSizes() {
  const { outputFiles, metafile } = await build({
    entryPoints: ["dist/index.js"],
    bundle: true,
    minify: true,
    format: "esm",
    splitting: true,
    outdir: "bundle",
    metafile: true,
    write: false,
  });
  const sizes = new Map(
    outputFiles.map(({ path, contents }) => [path.split("/").pop(), gzipSync(contents, { level: 9 }).length]),
  );
  const sum = (/** @type {Iterable<string>} */ names) =>
    [...names].reduce((bytes, name) => bytes + (sizes.get(name.split("/").pop()) ?? 0), 0);
  const first = new Set(["bundle/index.js"]);
  for (const name of first) {
    for (const { path, kind } of metafile.outputs[name]?.imports ?? [])
      if (kind === "import-statement") first.add(path);
  }
  return { first: sum(first), whole: sum(Object.keys(metafile.outputs)) };
}
