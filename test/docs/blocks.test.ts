// Every js block of the documents is run by a test: here, as it stands, or where RUN_ELSEWHERE says. A block is a program;
// several under one heading that begin with a comment of their file's name (`// task.js`) are one, of which main.js, or
// the first, is started. It prints what its comments promise (`// prints "…" and "…"`), in any order, and nothing else.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { documents } from "../../bench/figures.mjs";

/** Documents, or a heading of one, whose blocks are no programs for Node, and the tests that run them by their headings instead. */
const RUN_ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  "docs/headers.md": ["test/pages/headers.test.ts"],
  "docs/recipes/pool.md#In a page": ["test/pages/bundles.test.ts"],
  "docs/c.md#Ranks in a page": ["test/pages/bundles.test.ts"],
  "docs/recipes/guest.md": ["test/c/builds.test.ts"],
  "docs/recipes/progress.md#In a page": ["test/pages/recipes.test.ts"],
  "docs/recipes/canvas.md": ["test/pages/recipes.test.ts"],
  "docs/recipes/vite.md": ["test/pages/recipes.test.ts"],
  "docs/recipes/nextjs.md": ["test/pages/next.test.ts"],
  "docs/recipes/electron.md": ["test/pages/electron.test.ts"],
  "docs/recipes/tests.md#Vitest and jest": ["test/docs/recipes.test.ts"],
  "docs/tutorial.md#9. Processes and machines": ["test/docs/tutorial.test.ts"],
  "docs/tutorial.md#10. A page": ["test/pages/tutorial.test.ts"],
  "docs/cluster.md#Pages": ["test/pages/nats-suite.ts"],
  "docs/machines.md": ["test/docs/machines.test.ts", "test/pages/web.test.ts"],
};

interface Block {
  readonly heading: string;
  readonly language: string;
  readonly code: string;
  /** Its file's name, if it says one. */
  readonly name: string | undefined;
}

function blocks(path: string): Block[] {
  const found: Block[] = [];
  let heading = "";
  for (const [, title, language, code = ""] of readFileSync(path, "utf8").matchAll(
    /^#+ (.*)$|^```([^\n]*)\n([\s\S]*?)^```$/gm,
  )) {
    if (title !== undefined) heading = title;
    else found.push({ heading, language: language ?? "", code, name: /^\/\/ ([\w-]+\.js)\b/.exec(code)?.[1] });
  }
  return found;
}

interface Program {
  readonly name: string;
  readonly main: string;
  readonly files: ReadonlyMap<string, string>;
}

function programs(path: string): Program[] {
  const made: { heading: string; isOpen: boolean; files: Map<string, string> }[] = [];
  for (const { heading, language, code, name } of blocks(path)) {
    if (language !== "js" || path in RUN_ELSEWHERE || `${path}#${heading}` in RUN_ELSEWHERE) continue;
    const last = made.at(-1);
    if (name !== undefined && last?.isOpen && last.heading === heading) last.files.set(name, code);
    else made.push({ heading, isOpen: name !== undefined, files: new Map([[name ?? "main.js", code]]) });
  }
  return made.map(({ heading, files }, place) => {
    const main = files.has("main.js") ? "main.js" : ([...files.keys()][0] as string);
    return { name: `${place + 1}: ${heading}`, main, files };
  });
}

/** The lines that a program promises to print. */
function promised(files: ReadonlyMap<string, string>): string[] {
  const comments = [...files.values()].flatMap((code) => [...code.matchAll(/\/\/ prints (.*)$/gm)]);
  return comments.flatMap(([, said]) => [...(said as string).matchAll(/"([^"]*)"/g)].map(([, line]) => line as string));
}

const paths = documents();
/** Languages of blocks that a test could run: whoever writes one writes js. */
const CODE = /^(js|ts|jsx|tsx|mjs|cjs|javascript|typescript)$/;

it("finds the documents", () => {
  expect(paths).toEqual(expect.arrayContaining(["README.md", "docs/guarantees.md", "src/README.md"]));
});

it("no block that is a program goes by another name than js; docs/api has signatures", () => {
  const others = paths
    .filter((path) => !path.startsWith("docs/api/"))
    .flatMap((path) => blocks(path).map(({ language, heading }) => ({ path, language, heading })))
    .filter(({ language }) => CODE.test(language) && language !== "js");
  expect(others).toEqual([]);
});

describe.each(Object.entries(RUN_ELSEWHERE))("%s", (where, tests) => {
  const [path = "", part] = where.split("#");
  it(`each js block is run by ${tests.join(" or ")}`, () => {
    const text = tests.map((test) => readFileSync(test, "utf8")).join("\n");
    const run = [...text.matchAll(/recipe\("([^"]+)"\)/g)].map(([, heading]) => heading as string);
    const headings = blocks(path)
      .filter(({ language, heading }) => language === "js" && (part === undefined || heading === part))
      .map(({ heading }) => heading);
    expect(headings.length).toBeGreaterThan(0);
    expect(headings.filter((heading) => !run.some((name) => heading.startsWith(name)))).toEqual([]);
  });
});

for (const path of paths) {
  const found = programs(path);
  if (found.length === 0) continue;
  describe(path, () => {
    it.each(found)("$name", ({ main, files }) => {
      // In a folder of the project, so that it finds the package by its name.
      const folder = mkdtempSync(".tmp-");
      try {
        for (const [name, code] of files) writeFileSync(join(folder, name), code);
        const run = spawnSync(process.execPath, [join(folder, main)], { encoding: "utf8", timeout: 100_000 });
        expect([run.status, run.stderr]).toEqual([0, ""]);
        const lines = promised(files);
        expect(lines.length).toBeGreaterThan(0);
        expect(run.stdout.trimEnd().split("\n").sort()).toEqual(lines.sort());
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  });
}
