// The package as a user gets it: what is in it, and how large it is.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { rollup } from "rollup";
import { describe, expect, inject, it, test } from "vitest";
import {
  BUNDLE_MAX,
  LATER_MAX,
  MPI_MAX,
  PISCINA_MAX,
  POOL_MAX,
  WASM_MAX,
  WEB_MAX,
  WEB_NATS_MAX,
} from "../scripts/bounds.mjs";
import { bundleSizes, partSizes } from "../scripts/bundle.mjs";
import { buildDemo } from "../scripts/demo.mjs";
import { note, noted, silent, takeWarnings } from "../scripts/warnings.mjs";

/** Paths of the tarball's files. */
const paths = (
  JSON.parse(
    execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }),
  ) as [{ files: { path: string }[] }]
)[0].files.map(({ path }) => path);

test("npm pack holds only what a user needs", () => {
  const allowed =
    /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|SECURITY\.md|(bench|docs|docs\/(api|internals|recipes)|src)\/[\w-]+\.md|assembly\/layout(\/[\w-]+)?\.ts|dist\/(absent|c|index|mpi|piscina|piscina-worker|pool|port|protocol|web|cli|node\/(by-launcher|by-run|inline-agent|input|process-nodes|process|processes|process-memory|web-host|yields)|(agent|chunk|cli-\w+|engine|extensions|guest-memory|launch-job|link-process|make-geometry|monitor|nats|nats-joining|node|noble|private-node|start-watch|steward|ticket-office|top|twin|type|udp|wasm|websocket)-\w+)\.js(\.map)?|dist\/(c|index|mpi|piscina|pool|port|web)\.d\.ts|dist\/(pamir\.wasm|task-output\.cjs)|dist\/tasks\/[\w-]+\.js|examples\/[\w-]+\.js|examples\/c\/[\w-]+\.(c|cpp)|examples\/cluster\/[\w-]+\.(conf|env|service|yaml)|bench\/peers\/\w+\.[ch]|include\/((mpi|pami)\.h|cmake\/pamir\.cmake|lib\/arena\.c|rust\/(Cargo\.toml|src\/lib\.rs)))$/;
  expect(paths.filter((path) => !allowed.test(path))).toEqual([]);
  expect(paths).toEqual(
    expect.arrayContaining([
      "dist/index.js",
      "dist/cli.js",
      "dist/pamir.wasm",
      "docs/api/pamir.md",
      "README.md",
      "LICENSE",
      ...readdirSync("examples", { recursive: true, encoding: "utf8" })
        .filter((name) => !["c", "cluster"].includes(name))
        .map((name) => `examples/${name}`),
    ]),
  );
});

// Each file takes Node 2 ms of a core, in the launcher and in each of the processes that it starts.
test.each([
  ["dist/node/by-run.js", [/^\.\.\/chunk-/, /^\.\.\/protocol\.js$/]],
  // The launcher has loaded its own file before.
  [
    "dist/node/processes.js",
    [/^\.\.\/chunk-/, /^\.\.\/chunk-/, /^\.\.\/launch-job-/, /^\.\.\/protocol\.js$/, /^\.\/by-run\.js$/],
  ],
  ["dist/cli.js", [/^\.\/cli-chunk-/]],
  [paths.find((path) => path.startsWith("dist/cli-run-")) as string, [/^\.\/cli-chunk-/, /^\.\/index\.js$/]],
])("%s needs few other files at once", (path, needed) => {
  const code = readFileSync(path, "utf8");
  const files = [...code.matchAll(/import\s?\{[^}]*\}\s?from\s?['"](\.[^'"]+)['"]|import\s?['"](\.[^'"]+)['"]/g)].map(
    ([, from, alone]) => (from ?? alone) as string,
  );
  expect(files.sort()).toEqual(needed.map((one) => expect.stringMatching(one)));
});

test("absent.js has each name that is imported from what only Node can use", async () => {
  const code = paths
    .filter((path) => /^dist\/[\w-]+\.js$/.test(path))
    .map((path) => readFileSync(path, "utf8"))
    .join("\n");
  const names = [
    ...code.matchAll(/\{\s?(\w+)\s?\} ?= ?await import\(['"]#node\//g),
    ...code.matchAll(/await import\(['"]#node\/[\w-]+['"]\)\)\s*\.\s*(\w+)/g),
    // Beside an alternative without it.
    ...code.matchAll(/\?\s*\{\s*(\w+):\s*""\s*\}\s*:\s*import\(['"]#node\//g),
  ].map(([, name]) => name as string);
  expect(names).toHaveLength(code.match(/import\(['"]#node\//g)?.length ?? 0);
  const absent = (await import("../src/start/absent.js")) as Record<string, unknown>;
  expect(names.filter((name) => !(name in absent))).toEqual([]);
});

test("the package's documents link to what is in the package", () => {
  const folders = paths.map((path) => dirname(path));
  const links = paths
    .filter((path) => path.endsWith(".md"))
    .flatMap((path) =>
      [...readFileSync(path, "utf8").matchAll(/\]\((?!https?:)([^)#\s]+)/g)].map(([, to]) => ({
        path,
        to: join(dirname(path), to as string),
      })),
    );
  expect(links.length).toBeGreaterThan(20);
  expect(links.filter(({ to }) => !paths.includes(to) && !folders.includes(to))).toEqual([]);
});

test("the package's examples import nothing that it lacks", () => {
  const programs = readdirSync("examples").filter((name) => name.endsWith(".js"));
  const imported = programs.flatMap((name) =>
    [...readFileSync(`examples/${name}`, "utf8").matchAll(/(?:from|import) "([^"]+)"/g)].map(
      ([, from]) => from as string,
    ),
  );
  expect(imported).toContain("pamir");
  expect(imported.filter((from) => !["pamir", "pamir/mpi", "pamir/pool"].includes(from) && !isBuiltin(from))).toEqual(
    [],
  );
});

test("lint leaves alone what `npm run demo` has built", () => {
  mkdirSync("demo/dist", { recursive: true });
  const built = "demo/dist/lint.js";
  writeFileSync(built, "if (a == 1) debugger;\n");
  try {
    const biome = ["node_modules/@biomejs/biome/bin/biome", "lint", "demo"];
    const { status, stderr } = spawnSync(process.execPath, biome, { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  } finally {
    rmSync(built);
  }
});

test("what package.json exports is there, and nothing is depended on at run time", () => {
  const { main, module, types, typesVersions, exports, bin, dependencies } = JSON.parse(
    readFileSync("package.json", "utf8"),
  );
  const entries = [".", "./mpi", "./piscina", "./pool", "./port", "./web"].flatMap((name) => [
    exports[name].types,
    exports[name].default,
  ]);
  for (const target of [...entries, exports["./pamir.wasm"], bin.pamir]) {
    expect(statSync(target).isFile()).toBe(true);
  }
  // For resolvers that don't read "exports".
  expect({ types, default: main }).toEqual(exports["."]);
  expect(module).toBe(main);
  for (const name of ["mpi", "piscina", "pool", "port", "web"])
    expect(typesVersions["*"][name]).toEqual([exports[`./${name}`].types]);
  expect(dependencies).toBeUndefined();
});

describe("source maps", () => {
  const mapped = paths.filter((path) => path.endsWith(".js.map"));

  it("have what they name, and are those of the files that a program loads", () => {
    const names = new Set<string>();
    for (const path of mapped) {
      const { sources, sourcesContent } = JSON.parse(readFileSync(path, "utf8"));
      const file = path.slice(0, -4);
      expect(readFileSync(file, "utf8").trimEnd()).toMatch(/\n?\/\/# sourceMappingURL=[\w-]+\.js\.map$/);
      for (const [i, source] of (sources as string[]).entries()) {
        const name = join(dirname(path), source);
        names.add(name);
        // Other packages, and code that is kept as a string, come without a text.
        if (/^(node_modules|src\/generated)\//.test(name)) expect(sourcesContent[i]).toBe("");
        else expect(sourcesContent[i] === readFileSync(name, "utf8"), name).toBe(true);
      }
    }
    for (const one of ["src/pami/context.ts", "src/kernel/twin/lane.ts", "src/port/port.ts", "src/web/join.ts"])
      expect([...names]).toContain(one);
    const whole = paths.filter((path) => path.startsWith("dist/") && path.endsWith(".js")).map((path) => `${path}.map`);
    expect(mapped.filter((path) => !whole.includes(path))).toEqual([]);
  });

  it("no line is long enough to hide a stack in Node, which prints the line of an uncaught error", () => {
    const library = paths.filter(
      (path) => /^dist\/[\w/-]+\.js$/.test(path) && !/dist\/(cli|piscina|pool|port|tasks)/.test(path),
    );
    const long = library.flatMap((path) =>
      readFileSync(path, "utf8")
        .split("\n")
        // No error has its place in these: names of other files, and what the build has made of WebAssembly and of workers.
        .filter((line) => line.length >= 200 && !/^(import|export) ?\{|^var \w+(Hex|Source) ?=/.test(line))
        .map((line) => `${path}: ${line.length}: ${line.slice(0, 60)}`),
    );
    expect(long).toEqual([]);
  });

  it("lead to the line that throws", () => {
    const line = readFileSync("src/core/check.ts", "utf8")
      .split("\n")
      .findIndex((each) => each.includes("noSuchKey(key,"));
    const code = `import { launch } from "./dist/index.js"; launch(new URL("data:,"), { taks: 1 }).catch((e) => console.log(e.stack));`;
    const options = ["--enable-source-maps", "--input-type=module", "--eval", code];
    const { stdout } = spawnSync(process.execPath, options, { encoding: "utf8" });
    expect(stdout).toMatch(new RegExp(`at checkKeys \\(.*src/core/check\\.ts:${line + 1}:\\d+\\)`));
    expect(stdout).toMatch(/at launch \(.*src\/start\/launch\.ts:\d+:\d+\)/);
  });
});

it.each([
  ["publint", "publint/src/cli.js", ["--strict"]],
  // The package is ESM, which require() takes in each Node that it supports. TypeScript resolves no .wasm.
  [
    "are the types wrong",
    "@arethetypeswrong/cli/dist/index.js",
    ["--pack", ".", "--exclude-entrypoints", "pamir.wasm", "--ignore-rules", "cjs-resolves-to-esm"],
  ],
])("%s finds nothing, for any resolver", (_, file, args) => {
  const { status, stdout } = spawnSync(process.execPath, [join("node_modules", file), ...args], { encoding: "utf8" });
  expect(status, stdout).toBe(0);
});

test("docs/hosts.md says what the parts weigh", async () => {
  const { first } = await bundleSizes();
  const rows = [...readFileSync("docs/hosts.md", "utf8").matchAll(/^\| ([^|]+) \| (\d+) \|/gm)];
  const shown = new Map(rows.map(([, part, size]) => [part as string, Number(size)]));
  const sizes = await partSizes(first);
  expect([...shown.keys()].sort()).toEqual([...sizes.keys()].sort());
  for (const [part, size] of sizes) expect(Math.abs(size - (shown.get(part) ?? 0)), part).toBeLessThan(0.75);
});

test(`the bundle of import "pamir" is at most ${BUNDLE_MAX} bytes minified and gzipped, the wasm ${WASM_MAX}`, async () => {
  const { whole, first } = await bundleSizes();
  expect(first).toBeLessThanOrEqual(BUNDLE_MAX);
  // Loaded when it is needed; a bundler that splits nothing has it in the first file.
  expect(whole - first).toBeGreaterThan(1000);
  expect(whole - first).toBeLessThanOrEqual(LATER_MAX);
  expect(statSync("dist/pamir.wasm").size).toBeLessThanOrEqual(WASM_MAX);
});

test("pamir/port is at most 3 KB more, and has no second copy of the library", async () => {
  const entryPoints = ["dist/port.js"];
  const common = { bundle: true, minify: true, format: "esm", write: false } as const;
  const { outputFiles } = await build({ ...common, entryPoints, external: ["./index.js"] });
  const { contents, text } = outputFiles[0] as { contents: Uint8Array; text: string };
  expect(gzipSync(contents).length).toBeLessThanOrEqual(3020);
  expect(text).toContain('from"./index.js"');
});

test(`what pamir/pool adds to import "pamir" is at most ${POOL_MAX} bytes`, async () => {
  const common = { bundle: true, minify: true, format: "esm", write: false } as const;
  const { outputFiles } = await build({ ...common, entryPoints: ["dist/pool.js"], external: ["./index.js"] });
  const { contents, text } = outputFiles[0] as { contents: Uint8Array; text: string };
  expect(gzipSync(contents).length).toBeLessThanOrEqual(POOL_MAX);
  expect(text).toContain('from"./index.js"');
});

test(`what pamir/mpi adds to import "pamir" is at most ${MPI_MAX} bytes`, async () => {
  const common = { bundle: true, minify: true, format: "esm", write: false } as const;
  const { outputFiles } = await build({ ...common, entryPoints: ["dist/mpi.js"], external: ["./index.js"] });
  const { contents, text } = outputFiles[0] as { contents: Uint8Array; text: string };
  expect(gzipSync(contents).length).toBeLessThanOrEqual(MPI_MAX);
  expect(text).toContain('from"./index.js"');
});

test(`what pamir/piscina adds to import "pamir" is at most ${PISCINA_MAX} bytes, in the thread and in its workers`, async () => {
  const common = { bundle: true, minify: true, format: "esm", write: false, platform: "node" } as const;
  const entryPoints = ["dist/piscina.js", "dist/piscina-worker.js"];
  const { outputFiles } = await build({ ...common, entryPoints, outdir: "/", external: ["./index.js"] });
  const sizes = outputFiles.map(({ contents }) => gzipSync(contents).length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(PISCINA_MAX);
  for (const { text } of outputFiles) expect(text).toContain('from"./index.js"');
});

test(`what pamir/web adds to import "pamir" on a page is at most ${WEB_MAX} bytes, and has noble's license`, async () => {
  // Both need the kernels, of which a launcher has a file. The rest is counted with import "pamir".
  const { first } = await bundleSizes("dist/index.js", /\/(launch-job|wasm)-/);
  const web = await bundleSizes("dist/web.js", /\/wasm-/);
  expect(web.first + web.noble - first).toBeLessThanOrEqual(WEB_MAX);
  const noble = paths.find((path) => path.startsWith("dist/noble-")) as string;
  expect(readFileSync(noble, "utf8")).toContain("noble-ciphers - MIT License");
  expect(readFileSync(noble, "utf8")).toContain("noble-hashes - MIT License");
});

test(`what pamir/web loads for a job at a NATS server is at most ${WEB_NATS_MAX} bytes`, async () => {
  const { first } = await bundleSizes("dist/web.js");
  const nats = await bundleSizes("dist/web.js", /\/nats-joining-/);
  expect(nats.first - first).toBeLessThanOrEqual(WEB_NATS_MAX);
  expect(nats.first - first).toBeGreaterThan(0);
});

test("a bundler that knows no Node sees no import of it", () => {
  const scripts = paths.filter((path) => /^dist\/(index|mpi|pool|port|web|noble-|chunk-|private-).*\.js$/.test(path));
  expect(scripts.length).toBeGreaterThan(3);
  for (const path of scripts) expect(readFileSync(path, "utf8")).not.toMatch(/from "node:|import\("node:|require\(/);
});

test("npm run bench -- NAME: an unknown name lists those that there are, with code 2, and documents name those", () => {
  const names = readdirSync("bench").flatMap((file) => /^(.*)\.bench\.mjs$/.exec(file)?.[1] ?? []);
  const { status, stdout, stderr } = spawnSync(process.execPath, ["bench/bench.mjs", "nothing"], { encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toContain(`there is no benchmark "nothing": ${names.sort().join(", ")};`);
  const help = spawnSync(process.execPath, ["bench/bench.mjs", "--help"], { encoding: "utf8" });
  expect(help.status).toBe(0);
  const lines = help.stdout.split("\n").flatMap((line) => /^ {2}(\w+) +(\w.*)$/.exec(line)?.[1] ?? []);
  expect(lines).toEqual(names);
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  for (const file of [
    "README.md",
    "CONTRIBUTING.md",
    "bench/README.md",
    ...readdirSync("docs").map((one) => `docs/${one}`),
  ]) {
    if (!file.endsWith(".md")) continue;
    const text = readFileSync(file, "utf8");
    for (const [, name = ""] of text.matchAll(/npm run bench -- (\w+)/g))
      if (name !== "NAME") expect(names, file).toContain(name);
    for (const [, script = ""] of text.matchAll(/npm run ([\w:]+)/g))
      expect(Object.keys(scripts), file).toContain(script);
  }
});

test("the lock file names no registry", () => {
  expect(readFileSync("package-lock.json", "utf8")).not.toMatch(/"resolved"/);
});

test("npm is told of each dependency with an install script: it warns of others, and none is needed", () => {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
    packages: Record<string, { hasInstallScript?: boolean }>;
  };
  const scripts = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript);
  const names = scripts.map(([path]) => path.replace(/^.*node_modules\//, "")).sort();
  const { allowScripts } = JSON.parse(readFileSync("package.json", "utf8"));
  expect(allowScripts).toEqual(Object.fromEntries(names.map((name) => [name, false])));
});

describe("the bundlers of the build and of the demo", () => {
  const folder = mkdtempSync(join(inject("folder"), "warnings-"));
  const modules: Record<string, string> = {
    "esbuild.js": "export const isOne = 1 === 1 || typeof x === 'nothing';",
    "rollup.js": 'import "./missing.js";',
  };
  for (const [name, code] of Object.entries(modules)) writeFileSync(join(folder, name), code);

  it("print nothing of their own; what they warn of is counted, and makes the build fail", async () => {
    takeWarnings();
    noted(await build({ ...silent, entryPoints: [join(folder, "esbuild.js")], write: false }));
    const external = (id: string) => id.endsWith("missing.js");
    await (await rollup({ input: join(folder, "rollup.js"), external, onLog: note })).generate({
      format: "iife",
      name: "x.y-",
    });
    note("warn", { code: "UNRESOLVED_IMPORT", message: '"a" is imported' });
    note("info", { message: "no warning" });
    expect(takeWarnings()).toEqual([
      expect.stringMatching(/^esbuild: .*esbuild\.js: .*typeof/),
      'rollup: "a" is imported [UNRESOLVED_IMPORT]',
    ]);
    const text = readFileSync("scripts/build.mjs", "utf8");
    expect(text.match(/await rollup\(\{/g)?.length).toBe(text.match(/onLog: note,/g)?.length);
    expect(text.match(/\bbundle\(/g)).toHaveLength(1);
    expect(text).toMatch(/\nfailOnWarnings\(\);\n$/);
  });

  it("warn of nothing in the demo, nor in a program that bundles the package", async () => {
    await buildDemo(join(folder, "demo"));
    for (const path of ["dist/index.js", "dist/web.js", "dist/port.js", "dist/pool.js"])
      noted(
        await build({
          ...silent,
          entryPoints: [path],
          bundle: true,
          format: "esm",
          external: ["#node/*"],
          write: false,
        }),
      );
    expect(takeWarnings()).toEqual([]);
  });
});
