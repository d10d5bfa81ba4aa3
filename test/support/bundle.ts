// Code for worker threads, bundled into one file that is gone when the test file's tests are over.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { afterAll } from "vitest";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** The bundle of a module, given by its URL. */
export async function bundle(entry: URL, plugins: Plugin[] = []): Promise<URL> {
  const folder = mkdtempSync(join(tmpdir(), "pamir-test-"));
  folders.push(folder);
  const outfile = join(folder, "bundle.mjs");
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
