// Builds the demo, static files, and serves them. Usage: node scripts/demo.mjs [--build FOLDER] [--port N]
import { cpSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
/** @type {Record<string, string>} */
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript" };
const ISOLATION = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

/**
 * Puts the demo into a folder, which any server of static files can have.
 * @param {string} folder
 */
export async function buildDemo(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ["index.html", "style.css", "isolate.js"]) cpSync(join(root, "demo", name), join(folder, name));
  await build({
    entryPoints: ["page", "task", "post-message"].map((name) => join(root, "demo", `${name}.js`)),
    outdir: folder,
    bundle: true,
    minify: true,
    format: "esm",
    alias: { pamir: join(root, "dist", "index.js") },
    define: { "globalThis.PING_PONG": JSON.stringify(readFileSync(join(root, "demo", "ping-pong.js"), "utf8")) },
  });
}

/**
 * @param {string} folder
 * @param {Record<string, string>} headers
 */
export function serveDemo(folder, headers = ISOLATION) {
  return createServer(({ url = "/" }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    try {
      const file = pathname === "/" ? "/index.html" : pathname;
      const body = readFileSync(join(folder, file));
      response.setHeader("content-type", `${TYPES[extname(file)] ?? "text/plain"}; charset=utf-8`);
      response.end(body);
    } catch {
      response.statusCode = 404;
      response.end("not found");
    }
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { build: { type: "string" }, port: { type: "string", default: "8080" } } });
  const folder = values.build ?? join(root, "demo", "dist");
  await buildDemo(folder);
  if (values.build === undefined) {
    const server = serveDemo(folder);
    server.listen(Number(values.port), "localhost", () => console.log(`http://localhost:${values.port}/`));
  } else console.log(`the demo is in ${folder}`);
}
