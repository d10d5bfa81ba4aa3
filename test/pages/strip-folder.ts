// A folder with a page that has a strip alone: four tasks that exchange halos, or a trace that a test has made.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "esbuild";

export async function buildStrip(): Promise<{ folder: string; remove: () => void }> {
  const folder = mkdtempSync(join(tmpdir(), "pamir-strip-"));
  for (const name of ["style.css", "strip.css"]) cpSync(resolve("demo", name), join(folder, name));
  const head = '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">';
  const links = ["style.css", "strip.css"].map((name) => `<link rel="stylesheet" href="${name}">`).join("");
  const body =
    '<main><h1>Strip</h1><h2>Tasks</h2><div id="strip"></div></main><script type="module" src="strip-page.js"></script>';
  const icon = '<link rel="icon" href="data:,"><title>strip</title>';
  writeFileSync(join(folder, "index.html"), `<!doctype html><html lang="en">${head}${icon}${links}${body}</html>`);
  await build({
    entryPoints: [
      ...["strip-page", "strip-task"].map((name) => resolve("test/pages/programs", `${name}.ts`)),
      resolve("demo/strip/tree-task.js"),
    ],
    outdir: folder,
    entryNames: "[name]",
    bundle: true,
    format: "esm",
    logLevel: "error",
    alias: { pamir: resolve("dist/index.js") },
  });
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Tasks that exchange halos so many times: longer than a test takes. */
export const ROUNDS = 100_000;
/** Whether each of the four tasks has events in the picture. */
export const HAS_LANES =
  "strip.model.lanes.filter(({ tracks }) => tracks.handler.size > 0).length === 4 && strip.model.arrows > 10";
