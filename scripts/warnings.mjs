// What the bundlers of the build warn of: nothing, or the build fails. A warning that is read by nobody hides the next one.

/** @type {string[]} */
const warnings = [];

/** Options by which esbuild prints nothing. @satisfies {import("esbuild").BuildOptions} */
export const silent = { logLevel: "silent" };

/** Notes what esbuild warns of. @template {import("esbuild").BuildResult} Result @param {Result} result @returns {Result} */
export function noted(result) {
  for (const { id, text, location } of result.warnings)
    warnings.push(`esbuild: ${location?.file ?? ""}: ${text} [${id}]`);
  return result;
}

/** Notes what rollup warns of. @satisfies {import("rollup").RollupOptions["onLog"]} */
export function note(/** @type {string} */ level, /** @type {import("rollup").RollupLog} */ { code, message }) {
  // esbuild imports a name once for all modules that it makes one file of; merge() divides them again.
  if (level === "warn" && code !== "UNUSED_EXTERNAL_IMPORT") warnings.push(`rollup: ${message} [${code}]`);
}

/** What has been warned of since the last call. */
export function takeWarnings() {
  return warnings.splice(0);
}

/** Ends this process with an error if there were warnings. */
export function failOnWarnings() {
  const found = takeWarnings();
  if (found.length === 0) return;
  process.stderr.write(`${found.join("\n")}\nthe bundlers warn of ${found.length}: mend what they name\n`);
  process.exit(1);
}
