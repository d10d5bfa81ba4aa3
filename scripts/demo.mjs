// Builds the demo, static files, and serves them. Usage: node scripts/demo.mjs [--build FOLDER] [--port N]
// Where the port (default 8080) is taken, it takes the next one that is free.
import { cpSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { filesOf, ISOLATION, listenFrom } from "./serve.mjs";
import { failOnWarnings, noted, silent } from "./warnings.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Puts the demo into a folder, which any server of static files can have.
 * @param {string} folder
 */
export async function buildDemo(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ["index.html", "frames.html", "style.css", "isolate.js"]) {
    cpSync(join(root, "demo", name), join(folder, name));
  }
  const scripts = ["page", "task", "post-message", "frames", "frames-task", "frames-worker"];
  const built = await build({
    ...silent,
    entryPoints: scripts.map((name) => join(root, "demo", `${name}.js`)),
    outdir: folder,
    bundle: true,
    minify: true,
    format: "esm",
    alias: { pamir: join(root, "dist", "index.js") },
    define: { "globalThis.PING_PONG": JSON.stringify(readFileSync(join(root, "demo", "ping-pong.js"), "utf8")) },
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
