// Builds the demo, static files, and serves them.
// Usage: node scripts/demo.mjs [--build FOLDER [--address URL]] [--port N] [--host ADDRESS]
// Where the port (default 8080) is taken, it takes the next one that is free. With --host, other machines may join the tank:
// an address of this machine, or 0.0.0.0 for all of them.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { PROGRAMS } from "../demo/c/programs.js";
import { addressOf, documentsOf, withAddress, withCode } from "./demo-pages.mjs";
import { serveMeeting } from "./meeting.mjs";
import { packClang } from "./pack-clang.mjs";
import { failOnWarnings, noted, silent } from "./warnings.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

const PAGES = ["index.html", "frames.html", "more.html"];

/**
 * The programs in C of the page, their binaries, and clang, in the folder `c`.
 * @param {string} folder @param {boolean} hasClang
 * @returns {number} bytes of clang; 0: it is not there
 */
function buildPrograms(folder, hasClang) {
  mkdirSync(folder);
  for (const { name, folder: sources } of PROGRAMS) {
    cpSync(join(root, sources, `${name}.c`), join(folder, `${name}.c`));
    cpSync(join(root, "test", "c", "built", `${name}.wasm`), join(folder, `${name}.wasm`));
  }
  if (!hasClang) return 0;
  const bytes = packClang(join(folder, "clang"));
  if (bytes === 0) console.log("the page compiles nothing: @yowasp/clang is not installed");
  return bytes;
}

/**
 * Puts the demo into a folder, which any server of static files can have.
 * @param {string} folder
 * @param {object} [options]
 * @param {string | undefined} [options.address] where the folder will be, with a / at its end: for those that show links to its pages
 * @param {boolean} [options.hasClang] whether the page compiles programs in C, if @yowasp/clang is installed
 */
export async function buildDemo(folder, { address, hasClang = true } = {}) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ["style.css", "strip.css", "more/more.css", "c/c.css", "isolate.js", "tank.png"]) {
    cpSync(join(root, "demo", name), join(folder, basename(name)));
  }
  for (const name of PAGES) {
    const html = withAddress(withCode(readFileSync(join(root, "demo", name), "utf8")), name, address);
    writeFileSync(join(folder, name), html);
    for (const path of documentsOf(html)) cpSync(join(root, path), join(folder, path));
  }
  const built = await build({
    ...silent,
    entryPoints: Object.fromEntries(
      [
        "page.js",
        ...[
          "card/task.js",
          "card/post-message.js",
          "frames/frames.js",
          "frames/frames-task.js",
          "frames/frames-worker.js",
        ],
        ...["tank/tank-task.js", "tank/tank-post-worker.js", "strip/tree-task.js"],
        ...["c/rank-task.js", "c/compile-worker.js"],
        ...["blocks-task", "blocks-post", "call-pamir", "call-comlink"].map((name) => `everyday/${name}.js`),
        ...["more/more.js", "more/guest-worker.js", "more/bridge-task.js"],
      ].map((file) => [basename(file, ".js"), join(root, "demo", file)]),
    ),
    outdir: folder,
    bundle: true,
    // The page and its workers load pamir once.
    splitting: true,
    chunkNames: "chunk-[hash]",
    minify: true,
    format: "esm",
    alias: {
      pamir: join(root, "dist", "index.js"),
      "pamir/c": join(root, "dist", "c.js"),
      "pamir/pool": join(root, "dist", "pool.js"),
      "pamir/web": join(root, "dist", "web.js"),
    },
    define: { "globalThis.CLANG_BYTES": String(buildPrograms(join(folder, "c"), hasClang)) },
  });
  noted(built);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      build: { type: "string" },
      address: { type: "string" },
      port: { type: "string", default: "8080" },
      host: { type: "string" },
    },
  });
  const address = values.address === undefined ? undefined : addressOf(values.address);
  if (values.address !== undefined && address === undefined) {
    console.error(`demo: --address is ${JSON.stringify(values.address)}, not a URL such as https://example.org/pamir/`);
    process.exit(2);
  }
  const folder = values.build ?? join(root, "demo", "dist");
  await buildDemo(folder, { address });
  failOnWarnings();
  if (values.build === undefined) {
    await serveMeeting(folder, { port: Number(values.port), host: values.host, command: "npm run demo" });
  } else console.log(`the demo is in ${folder}`);
}
