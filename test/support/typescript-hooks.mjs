// Node loads the sources as they are: hooks for its loader, which take the types out of them. A module that Vite transforms
// reads each import by a getter: so the suites of kernels and simulations took twice the processor time.
import { existsSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { fileURLToPath } from "node:url";
import { transformSync } from "esbuild";

const root = new URL("../../", import.meta.url);
const { name, exports } = JSON.parse(readFileSync(new URL("package.json", root), "utf8"));
/** What Vitest puts behind the path of a test file, so that Node loads it once more. */
const AGAIN = /%3Fvitest=\d+$/;

/**
 * What is not left to Vitest's hook: that one tells Vitest of each module by a message, and one whose answer is late when a
 * worker ends is an error of the run.
 * @param {string} specifier @param {string} parent @returns {URL | undefined}
 */
function own(specifier, parent) {
  if (/^\.\.?\//.test(specifier)) {
    // "./name.js" or, in assembly/, "./name".
    const source = new URL(`${specifier.replace(/\.js$/, "")}.ts`, parent);
    return existsSync(source) ? source : new URL(specifier, parent);
  }
  if (specifier.startsWith("#node/")) return new URL(`dist/node/${specifier.slice(6)}.js`, root);
  if (specifier !== name && !specifier.startsWith(`${name}/`)) return undefined;
  const entry = exports[`.${specifier.slice(name.length)}`];
  return new URL(entry?.default ?? entry, root);
}

/** @type {import("node:module").ResolveHook} */
export async function resolve(specifier, context, next) {
  const { parentURL = "" } = context;
  if (isBuiltin(specifier)) {
    return { url: `node:${specifier.replace(/^node:/, "")}`, format: "builtin", shortCircuit: true };
  }
  // Vitest loads the runner once for each test file.
  if (specifier.startsWith("file:"))
    return { url: specifier.replace(AGAIN, `?vitest=${Date.now()}`), shortCircuit: true };
  const isOfPackage = parentURL.startsWith(root.href) && !parentURL.includes("/node_modules/");
  const url = isOfPackage ? own(specifier, parentURL) : undefined;
  return url === undefined ? next(specifier, context) : { url: url.href, shortCircuit: true };
}

/** @type {import("node:module").LoadHook} */
export async function load(url, context, next) {
  if (!/\.ts(\?|$)/.test(url) || url.includes("/node_modules/")) return next(url, context);
  const sourcefile = fileURLToPath(url);
  const { code } = transformSync(readFileSync(sourcefile, "utf8"), {
    loader: "ts",
    target: "es2022",
    sourcefile,
    sourcemap: "inline",
    sourcesContent: false,
  });
  return { format: "module", source: code, shortCircuit: true };
}
