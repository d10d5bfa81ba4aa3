// Code for worker threads, bundled into one file that is gone when the run is over: test files share it.
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** See folder.mjs. */
    folder: string;
  }
}

/** The bundle of a module, given by its URL. */
export async function bundle(entry: URL, plugins: Plugin[] = []): Promise<URL> {
  const outfile = join(mkdtempSync(join(inject("folder"), "bundle-")), "bundle.mjs");
  await build({
    entryPoints: [fileURLToPath(entry)],
    bundle: true,
    format: "esm",
    platform: "node",
    target: "es2022",
    outfile,
    plugins,
  });
  return pathToFileURL(outfile);
}
