// What the thread of a task loads before it can exchange messages: each task of a job loads it anew.
import { readFileSync, statSync } from "node:fs";
import { build } from "esbuild";
import { launch } from "pamir";
import { expect, test } from "vitest";

/** Bytes of all files that `import { attach } from "pamir"` loads. */
const LOADED_MAX = 420_000;
/** Bytes of the largest of them: glibc keeps the memory into which a larger one was read. */
const FILE_MAX = 255_000;

/** The files that dist/index.js imports, and what these import. */
async function loadedAtFirst(): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: ["dist/index.js"],
    bundle: true,
    splitting: true,
    format: "esm",
    outdir: "/",
    external: ["#node/*"],
    metafile: true,
    write: false,
  });
  const found = new Set<string>();
  const add = (path: string): void => {
    if (found.has(path)) return;
    found.add(path);
    for (const { path: next, kind } of metafile.inputs[path]?.imports ?? []) {
      if (kind === "import-statement") add(next);
    }
  };
  add("dist/index.js");
  return [...found];
}

test("a task loads few bytes in few files, without the twin and without collectives", async () => {
  const files = await loadedAtFirst();
  const sizes = files.map((file) => statSync(file).size);
  expect(files.length).toBeLessThanOrEqual(3);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(LOADED_MAX);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(FILE_MAX);
  const sources = files.flatMap((file): string[] => JSON.parse(readFileSync(`${file}.map`, "utf8")).sources);
  // What is there shows that the maps say what the files have.
  expect(sources).toContain("../src/protocol/context-core.ts");
  const isLater = /src\/(kernel\/twin|collective)\//;
  expect(sources.filter((source) => isLater.test(source))).toEqual([]);
});

test("the tasks of a job compile no kernels: they get the module that the launching thread has compiled", async () => {
  const job = await launch(new URL("tasks/compiles.js", import.meta.url), { tasks: 3, join: true });
  const context = job.client.createContext();
  const compiled: number[] = [];
  context.dispatch(1, ({ payload }) => {
    compiled.push(payload[0] as number);
  });
  while (compiled.length < 2) await context.progress();
  expect(compiled).toEqual([0, 0]);
  await job.terminate();
});
