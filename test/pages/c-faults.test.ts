// Programs of clumsy authors, which the demo's page compiles: the page says what happened, and runs the next one as the first.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildDemo } from "../../scripts/demo.mjs";
import { filesOf, ISOLATION, openBrowser, serve } from "./support.js";

const HAS_CLANG = process.env.PAMIR_REQUIRE_ALL === "1" || existsSync("node_modules/@yowasp/clang");
if (!HAS_CLANG) console.log("not run: programs with faults in a page, since @yowasp/clang is not installed");
const PATIENCE = { timeout: 100_000 };

let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-c-faults-"));
  await buildDemo(folder);
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A program of two ranks: what rank 1 does, and what both do behind it. */
const program = (one: string, both = 'MPI_Barrier(MPI_COMM_WORLD); puts("after");') => `
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int deep(volatile int n) { volatile char frame[64]; frame[0] = n; return deep(n + 1) + frame[0]; }
int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) { ${one} }
  ${both}
  MPI_Finalize();
}`;

/** What a program does, what the page says of it, and lines that a rank writes. */
const PROGRAMS: [what: string, source: string, said: RegExp, lines: RegExp][] = [
  [
    "takes memory until there is none",
    program('int n = 0; for (char *volatile p; (p = malloc(1 << 20)) != NULL; n++) p[0] = 1; printf("%d MiB\\n", n);'),
    /: 2 ranks ended with code 0/,
    /\[1\] [1-9]\d+ MiB\n/,
  ],
  ["calls itself without end", program("return deep(1);"), /Rank 1: the program has called too deeply/, /^$/],
  [
    "writes outside its memory",
    program("*(volatile int *)0xfffffff0u = 7;"),
    /Rank 1: the program has trapped: memory access out of bounds\. So the other ranks were ended\.$/,
    /^$/,
  ],
  [
    "leaves, while another rank waits for it",
    program("exit(0);"),
    /Rank 0: MPI_Barrier: .* \(MPIX_ERR_PROC_FAILED\)\. It waited for rank 1, which has ended with code 0\.$/,
    /^$/,
  ],
  [
    "opens a file",
    program('FILE *file = fopen("some.txt", "w"); fputs("x", file); printf("%ld byte\\n", ftell(file));'),
    /: 2 ranks ended with code 0/,
    /\[1\] 1 byte\n/,
  ],
  [
    "has no main()",
    "int mein(void) { return 0; }",
    /does not compile: line 1: this program has no function main/,
    /^$/,
  ],
];

describe.skipIf(!HAS_CLANG)("a program that", () => {
  it(PROGRAMS.map(([what]) => what).join("; "), () =>
    serve(filesOf(folder, ISOLATION), async (url) => {
      const page = await browser.newPage();
      const wrong: string[] = [];
      page.on("pageerror", (error) => wrong.push(String(error)));
      try {
        await page.goto(`${url}?grid=64&workers=1&stop=1`);
        const section = page.getByRole("region", { name: "An MPI program, unchanged" });
        await section.scrollIntoViewIfNeeded();
        await section.getByRole("combobox", { name: "Program" }).selectOption("hello");
        await section.getByRole("spinbutton", { name: "Ranks" }).fill("2");
        const source = section.getByRole("textbox", { name: "Source" });
        await expect.poll(() => source.inputValue(), PATIENCE).toContain("rank %d");
        for (const [what, text, said, lines] of PROGRAMS) {
          await source.fill(text);
          const { status, output } = await run(page);
          expect(status, what).toMatch(said);
          expect(output, what).toMatch(lines);
        }
        await section.getByRole("button", { name: "Take back the changes" }).click();
        expect((await run(page)).status).toMatch(/^hello\.c: 2 ranks ended with code 0/);
        expect(wrong).toEqual([]);
      } finally {
        await page.close();
      }
    }),
  );
});

async function run(page: Page): Promise<{ status: string; output: string }> {
  await page.locator(".c-run").click();
  await page.waitForFunction("!document.querySelector('.c-run').disabled", undefined, PATIENCE);
  const output = await page.getByRole("region", { name: "What the ranks write" }).innerText();
  return { status: (await page.locator("#c [role=status]").textContent()) ?? "", output };
}
