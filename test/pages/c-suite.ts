// Programs in C on a page, in whichever browser: the same lines as by `pamir run`, and how ranks end.
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run } from "../support/run-command.js";
import { filesOf, ISOLATION } from "./support.js";
import type { AnyPage } from "./web-hosted.js";

interface AnyBrowser {
  newPage(): Promise<AnyPage>;
  close(): Promise<unknown>;
}

interface Line {
  readonly rank: number;
  readonly stream: 1 | 2;
  readonly text: string;
}

interface End {
  readonly code: number;
  readonly ranks: readonly {
    readonly code: number;
    readonly error?: { code: string; message: string };
    files: object;
  }[];
  readonly lines: readonly Line[];
}

const PROGRAMS = "test/c/built";

/** Declares the tests. A browser is opened before the first one. */
export function cSuite(open: () => Promise<AnyBrowser>): void {
  let browser: AnyBrowser;
  let servers: Server[];
  let page: AnyPage;
  let plain: AnyPage;
  /** A folder of the project, so that the program finds the package by its name. */
  let folder: string;

  const opened = async (headers: Record<string, string>): Promise<AnyPage> => {
    const server = createServer(filesOf(folder, headers));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
    const made = await browser.newPage();
    await made.goto(`http://localhost:${(server.address() as AddressInfo).port}/`);
    await made.waitForFunction("globalThis.run !== undefined");
    return made;
  };

  beforeAll(async () => {
    servers = [];
    folder = mkdtempSync(resolve(".tmp-c-"));
    browser = await open();
    await build({
      entryPoints: ["c-page", "c-task", "guest-task"].map((name) =>
        resolve(import.meta.dirname, `programs/${name}.ts`),
      ),
      outdir: folder,
      bundle: true,
      splitting: true,
      minify: true,
      format: "esm",
      logLevel: "error",
    });
    for (const name of readdirSync(PROGRAMS)) copyFileSync(join(PROGRAMS, name), join(folder, name));
    const icon = '<!doctype html><link rel="icon" href="data:,">';
    writeFileSync(join(folder, "index.html"), `${icon}<script type="module" src="c-page.js"></script>`);
    page = await opened(ISOLATION);
    plain = await opened({});
  });

  afterAll(async () => {
    await browser?.close();
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    rmSync(folder, { recursive: true });
  });

  const runOn = async (on: AnyPage, name: string, tasks: number, options: object = {}): Promise<End> =>
    (await on.evaluate(`run(${JSON.stringify(name)}, ${tasks}, ${JSON.stringify(options)})`)) as End;
  const textOf = ({ lines }: End, rank: number, stream = 1): string[] =>
    lines.filter((line) => line.rank === rank && line.stream === stream).map(({ text }) => text);

  it.each([
    ["messages", 3],
    ["collectives", 4],
  ] as const)("%s.c by %i ranks says what it says in Node", async (name, tasks) => {
    const end = await runOn(page, name, tasks);
    expect(end).toMatchObject({ code: 0, ranks: Array.from({ length: tasks }, (_, rank) => ({ rank, code: 0 })) });
    const { stdout } = run("-n", String(tasks), "--no-labels", resolve(PROGRAMS, `${name}.wasm`));
    const lines = textOf(end, 0);
    expect(lines.length).toBeGreaterThan(10);
    expect(lines).toEqual(stdout.trimEnd().split("\n"));
  });

  it("programs with memories of their own, and files: they are given, changed, and handed out", async () => {
    const messages = await runOn(page, "messages", 3, { isolate: true });
    expect(textOf(messages, 0)).toEqual(textOf(await runOn(page, "messages", 3), 0));
    const files = await runOn(page, "files", 1, { files: { "given.txt": "given" } });
    expect(textOf(files, 0).join("\n")).toBe(readFileSync("test/c/programs/files.txt", "utf8").trimEnd());
    expect(files).toMatchObject({ code: 0, ranks: [{ code: 0, files: { "given.txt": "given" } }] });
    expect(Object.keys(files.ranks[0]?.files ?? {})).toContain("b.bin");
    const streams = await runOn(page, "streams", 2, { input: "1 2 39 end\n" });
    expect(textOf(streams, 0)).toContain("3 numbers, sum 42");
    expect(textOf(streams, 0).at(-1)).toBe("no newline at the end");
    expect(textOf(streams, 0, 2)).toEqual(["error 1"]);
    expect(textOf(streams, 1)).toContain("0 numbers, sum 0");
  });

  describe("a rank that ends", () => {
    it.each([
      ["exit", 9, undefined],
      ["abort", 134, "the program called abort()"],
      ["trap", 1, expect.stringMatching(/^the program has trapped: /)],
      ["stack", 1, expect.stringContaining("the program's stack has run over its end")],
      ["rank", 6, "MPI_Send: rank 77 is none of 0 to 1 (MPI_ERR_RANK)"],
    ])("by %s: code %i, and the other rank is ended", async (how, code, message) => {
      const { code: first, ranks } = await runOn(page, "ends", 2, { args: [how] });
      expect(first).toBe(code);
      expect(ranks[1]?.code).toBe(code);
      expect(ranks[1]?.error?.message).toEqual(message);
      expect(ranks[0]).toMatchObject({ code: 1, error: { message: "the rank was ended: terminated" } });
    });

    it("the others go on if they are to", async () => {
      const end = await runOn(page, "ends", 2, { args: ["exit"], onError: "report" });
      expect(end).toMatchObject({ code: 9, ranks: [{ code: 0 }, { code: 9 }] });
      expect(textOf(end, 0)).toEqual(["rank 0: MPIX_ERR_PROC_FAILED, MPIX_ERR_PROC_FAILED"]);
    });
  });

  it("pamir is a guest in the memory of threads in C, which grows meanwhile", async () => {
    expect(await page.evaluate("guest(3, 8388608)")).toEqual({ results: [0, 0, 0], hasGrown: true });
  });

  it("what can't run is refused, with what is wrong", async () => {
    expect(await runOn(page, "absent", 2)).toEqual({
      code: "PAMIR_PROGRAM",
      message: expect.stringMatching(/^the program \S+absent.wasm can't be loaded: status 404$/),
    });
    expect(await runOn(page, "made-by", 2)).toMatchObject({ code: "PAMIR_PROGRAM" });
    expect(await page.evaluate('runHere("ends")')).toEqual({
      code: "PAMIR_WOULD_BLOCK",
      message: "a program blocks its thread, which a page's own must not: launchProgram() runs it in workers",
    });
    expect(await runOn(plain, "ends", 2)).toEqual({
      code: "PAMIR_NOT_ISOLATED",
      message: expect.stringContaining("is not cross-origin isolated"),
    });
  });
}
