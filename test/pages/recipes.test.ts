// docs/recipes: programs for pages, as they stand there. With and without the headers, as the pages promise.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import * as esbuild from "esbuild";
import * as vite from "vite";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { filesOf, ISOLATION, onPage, openBrowser, serve } from "./support.js";

const browser = await openBrowser();
let folder: string;

afterAll(() => browser.close());
beforeEach(() => {
  // In the project, so that bundlers find the package by its name.
  folder = mkdtempSync(resolve(".tmp-recipes-"));
  return () => rmSync(folder, { recursive: true });
});

const PAGES = ["progress", "canvas", "vite"].map((name) => readFileSync(`docs/recipes/${name}.md`, "utf8"));
const HTML = '<!doctype html><title></title><script type="module" src="./main.js"></script>';

/** The blocks under a heading by the names of their files: the html block is index.html, others say it in their first line. */
function recipe(heading: string): ReadonlyMap<string, string> {
  const sections = PAGES.flatMap((page) => page.split(/^## /m));
  const section = sections.find((part) => part.startsWith(`${heading}\n`)) ?? expect.fail(heading);
  const blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, code = ""]) => {
    const name = language === "html" ? "index.html" : (/^\/\/ (\S+)\n/.exec(code)?.[1] ?? expect.fail(code));
    return [name, code] as const;
  });
  return new Map([["index.html", HTML], ...blocks]);
}

function write(files: ReadonlyMap<string, string>): void {
  for (const [name, code] of files) writeFileSync(join(folder, name), code);
}

/** What an expression comes to on a page, once it is not empty; errors on the page are failures. */
function run(url: string, expression: string): Promise<{ result: unknown; isIsolated: boolean }> {
  return onPage(browser, "about:blank", async (page) => {
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await page.goto(url);
    await page.waitForFunction(expression).catch((error: Error) => {
      errors.push(error.message);
    });
    expect(errors).toEqual([]);
    return { result: await page.evaluate(expression), isIsolated: await page.evaluate(() => crossOriginIsolated) };
  });
}

const TITLE = "document.title";
const PROGRAMS = [
  { files: recipe("In a page"), shows: "document.querySelector('output').value", result: "499999500000" },
  { files: recipe("Pixels in shared memory"), shows: TITLE, result: "153 102 51 255", needsIsolation: true },
  { files: recipe("Filter a picture"), shows: TITLE, result: "100 100 100 255" },
  { files: recipe("A canvas of a worker"), shows: TITLE, result: "true 640" },
  { files: recipe("Thumbnails"), shows: TITLE, result: "80x60 80x60 80x60" },
];

describe.each(PROGRAMS)("a program that shows $result", ({ files, shows, result, needsIsolation = false }) => {
  it.each(needsIsolation ? [true] : [true, false])("isolated: %s", async (isIsolated) => {
    write(files);
    const outdir = join(folder, "dist");
    mkdirSync(outdir);
    await esbuild.build({
      entryPoints: ["main.js", "worker.js"].map((name) => join(folder, name)),
      bundle: true,
      format: "esm",
      splitting: true,
      outdir,
      logLevel: "error",
    });
    writeFileSync(join(outdir, "index.html"), readFileSync(join(folder, "index.html")));
    const answer = filesOf(outdir, isIsolated ? ISOLATION : {});
    expect(await serve(answer, (url) => run(url, shows))).toEqual({ result, isIsolated });
  });
});

describe("vite.md", () => {
  const shows = "document.querySelector('#out').textContent";
  const expected = { result: "12 squared is 144", isIsolated: true };

  /** The program with each of the pairs replaced; its page by the development server, and as it is built. */
  async function runByVite(...replaced: [string, string][]): Promise<unknown[]> {
    write(recipe("The program"));
    for (const [from, to] of replaced) {
      const path = join(folder, from.includes("headers") ? "vite.config.js" : "main.js");
      const text = readFileSync(path, "utf8");
      expect(text).toContain(from);
      writeFileSync(path, text.replaceAll(from, to));
    }
    const configFile = join(folder, "vite.config.js");
    const options: vite.InlineConfig = {
      root: folder,
      configFile,
      cacheDir: join(folder, ".vite"),
      logLevel: "error",
      server: { port: 0 },
      preview: { port: 0 },
    };
    const dev = await vite.createServer(options);
    await dev.listen();
    const results = [await run(dev.resolvedUrls?.local[0] as string, shows)];
    await dev.close();
    await vite.build(options);
    const shown = await vite.preview(options);
    results.push(await run(shown.resolvedUrls?.local[0] as string, shows));
    await shown.close();
    return results;
  }

  it("The program, as it stands", async () => {
    expect(await runByVite()).toEqual([expected, expected]);
  });

  it("without the headers", async () => {
    const shown = { ...expected, isIsolated: false };
    expect(await runByVite(["{ headers }", "{}"])).toEqual([shown, shown]);
  });

  it("in Vite's own form", async () => {
    const start = `new Worker(new URL("./worker.js", import.meta.url), { type: "module" })`;
    const by = `import PoolWorker from "./worker.js?worker";\nimport`;
    expect(await runByVite([start, "new PoolWorker()"], ["import { pool }", `${by} { pool }`])).toEqual([
      expected,
      expected,
    ]);
  });
});
