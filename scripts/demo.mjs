// Builds the demo, static files, and serves them. Usage: node scripts/demo.mjs [--build FOLDER] [--port N]
// Where the port (default 8080) is taken, it takes the next one that is free.
import { cpSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { filesOf, ISOLATION, listenFrom } from "./serve.mjs";
import { failOnWarnings, noted, silent } from "./warnings.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The part of a source from one line to another, both included. @param {string} file @param {string} from @param {string} to */
function cut(file, from, to) {
  const lines = readFileSync(join(root, "demo", "tank", file), "utf8").split("\n");
  const first = lines.findIndex((line) => line.startsWith(from));
  const last = lines.findIndex((line, at) => at > first && line === to);
  if (first < 0 || last < 0) throw new Error(`${file} has no lines from "${from}" to "${to}"`);
  const indent = /^ */.exec(lines[first])?.[0].length ?? 0;
  return lines
    .slice(first, last + 1)
    .map((line) => line.slice(indent))
    .join("\n");
}

/** What the page shows of the tank. */
function tankCode() {
  return [
    `// water.js: every program of the tank has this\n${cut("water.js", "function stepRow(", "}")}`,
    `// halos.js: by pamir\n${cut("halos.js", "  put(step, own) {", "  }")}`,
  ].join("\n\n");
}

/**
 * Puts the demo into a folder, which any server of static files can have.
 * @param {string} folder
 */
export async function buildDemo(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ["index.html", "frames.html", "style.css", "strip.css", "isolate.js", "tank.png"]) {
    cpSync(join(root, "demo", name), join(folder, name));
  }
  // The recipe that the page links to.
  cpSync(join(root, "docs", "recipes", "canvas.md"), join(folder, "docs", "recipes", "canvas.md"));
  const scripts = ["page", "task", "post-message", "frames", "frames-task", "frames-worker"].map(
    (name) => `${name}.js`,
  );
  const built = await build({
    ...silent,
    entryPoints: Object.fromEntries(
      [...scripts, "tank/tank-task.js", "tank/tank-post-worker.js"].map((file) => [
        basename(file, ".js"),
        join(root, "demo", file),
      ]),
    ),
    outdir: folder,
    bundle: true,
    // The page and its workers load pamir once.
    splitting: true,
    chunkNames: "chunk-[hash]",
    minify: true,
    format: "esm",
    alias: { pamir: join(root, "dist", "index.js") },
    define: {
      "globalThis.PING_PONG": JSON.stringify(readFileSync(join(root, "demo", "ping-pong.js"), "utf8")),
      "globalThis.TANK_CODE": JSON.stringify(tankCode()),
    },
  });
  noted(built);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { build: { type: "string" }, port: { type: "string", default: "8080" } } });
  const folder = values.build ?? join(root, "demo", "dist");
  await buildDemo(folder);
  failOnWarnings();
  if (values.build === undefined) {
    const wanted = Number(values.port);
    const port = await listenFrom(createServer(filesOf(folder, ISOLATION)), wanted);
    console.log(`http://localhost:${port}/${port === wanted ? "" : `  (port ${wanted} is taken)`}`);
  } else console.log(`the demo is in ${folder}`);
}
