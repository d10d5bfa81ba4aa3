// A server of a folder's files, for the demo, the measurements in a browser, and the tests of whole pages.
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";

/** @type {Record<string, string>} */
const TYPES = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2",
};

/** What makes a page cross-origin isolated: without it threads can't share memory. */
export const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

/** The path of a request. A stranger may ask for "//", which no URL has: undefined. @param {string | undefined} url */
export function pathOf(url = "/") {
  return URL.canParse(url, "http://localhost") ? new URL(url, "http://localhost").pathname : undefined;
}

/**
 * Answers with the files of a folder.
 * @param {string} folder
 * @param {Record<string, string>} headers that each gets
 * @returns {import("node:http").RequestListener}
 */
export function filesOf(folder, headers = {}) {
  return ({ url }, response) => {
    const path = pathOf(url);
    const file = path?.endsWith("/") ? `${path}index.html` : path;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    try {
      if (file === undefined) throw new Error("no path");
      const body = readFileSync(join(folder, file));
      response.setHeader("content-type", `${TYPES[extname(file)] ?? "text/plain"}; charset=utf-8`);
      response.end(body);
    } catch {
      response.statusCode = 404;
      response.end("not found");
    }
  };
}

/** Ports that are tried, from the first. */
const PORTS = 100;

/**
 * Listens on the first port that is free, of a port and those behind it.
 * @param {import("node:http").Server} server
 * @param {number} port
 * @param {string} [host]
 * @returns {Promise<number>} the port
 */
export async function listenFrom(server, port, host = "localhost") {
  for (const last = Math.min(port + PORTS - 1, 65535); ; port++) {
    try {
      await new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, host, () => {
          server.off("error", reject);
          resolve(undefined);
        });
      });
      return port;
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EADDRINUSE" || port >= last) throw error;
    }
  }
}
