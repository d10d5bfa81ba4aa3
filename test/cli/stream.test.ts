// The main job on small files: what it prints, and its exit codes.
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import type { StreamedFile } from "../../src/cli/stream/files.js";
import { printFiles } from "../../src/cli/stream/stream.js";
import { type FileArrival, WAYS, type Way } from "../../src/cli/stream/ways.js";

let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(inject("folder"), "stream-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

function stream(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, ["dist/cli.js", "stream", ...args], { encoding: "utf8", timeout: 110_000 });
}

describe("pamir stream", () => {
  it.skipIf(process.platform === "win32")("in a folder that is gone: one line, and code 2", () => {
    const gone = mkdtempSync(join(folder, "gone-"));
    const command = `cd "${gone}" && rmdir "${gone}" && exec "$0" "${resolve("dist/cli.js")}" stream --quick`;
    const { status, stderr } = spawnSync("sh", ["-c", command, process.execPath], {
      encoding: "utf8",
      timeout: 110_000,
    });
    expect(stderr).toMatch(/^pamir: the current folder does not exist any more: .* \(ENOENT\)\n$/);
    expect(status).toBe(2);
  });

  it("streams files of 0 bytes, of 1 byte and of several messages, each six ways", () => {
    const files = [0, 1, 65536, 200_001].map((bytes) => {
      const content = randomBytes(bytes);
      const file = join(folder, `${bytes}.bin`);
      writeFileSync(file, content);
      return { file, digest: createHash("sha256").update(content).digest("hex") };
    });
    const { status, stdout, stderr } = stream("--quick", "--all", ...files.map(({ file }) => file));
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    for (const { digest, file } of files) expect(stdout).toContain(`${digest}  ${file}`);
    expect(stdout.match(/^│ [\w-]+, [^│]+│ +4 │ +265,538 │ +[\d.]+ │ all equal │$/gm)).toHaveLength(6);
    expect(stdout).toMatch(/^Just shown: 4 files went from one thread/m);
    expect(stdout).toContain("4 files × 6 ways: every SHA-256 equals that of the file.");
    for (const system of ["pamir-wasm", "pamir-ts", "postMessage"]) {
      expect(stdout).toMatch(new RegExp(`│ ${system} +│ +[\\d,]+ ns │ +[\\d.]+ M │`));
    }
  });

  it("lists the ten largest of many files, in lines of at most 100 characters; all of them where asked to", () => {
    const names = Array.from(
      { length: 12 },
      (_, i) => `a-rather-long-name-of-a-file-${String.fromCharCode(97 + i)}.bin`,
    );
    const large = names.map((path, i): StreamedFile => ({ path, content: Buffer.alloc(10 ** 8 + i), digest: "x" }));
    const results = new Map(
      WAYS.map((way): [Way, FileArrival[]] => [way, names.map(() => ({ digest: "x", rate: 99e9 }))]),
    );
    const shown = [false, true].map((all) => {
      const written: string[] = [];
      const spies = [
        vi.spyOn(process.stdout, "write").mockImplementation((text) => written.push(String(text)) > 0),
        vi.spyOn(console, "log").mockImplementation((text) => void written.push(`${text}\n`)),
      ];
      expect(printFiles(large, results, all)).toBe(0);
      for (const spy of spies) spy.mockRestore();
      return written.join("").split("\n");
    });
    const [summary = [], everything = []] = shown;
    const listed = (lines: string[]) =>
      lines.flatMap((line) => /^│ .*file-([a-z])\.bin/.exec(line)?.[1] ?? []).join("");
    expect(listed(summary)).toBe("lkjihgfedc");
    expect(listed(everything)).toBe("abcdefghijkl");
    expect(Math.max(...summary.map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(summary).toContain("GB/s of the 10 largest files (--all lists all 12):");
  });

  it.each([
    { what: "a file that is missing", name: () => join(folder, "missing"), says: /missing: ENOENT/ },
    { what: "a folder", name: () => folder, says: /is not a file/ },
    { what: "an option that is unknown", name: () => "--nope", says: /--nope/ },
  ])("$what: one line that names it, exit code 2", ({ name, says }) => {
    const { status, stdout, stderr } = stream(name());
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(says);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  it("a digest that differs: said in the table, and exit code 1", () => {
    const written: string[] = [];
    const spies = [process.stdout, process.stderr].map((stream) =>
      vi.spyOn(stream, "write").mockImplementation((text) => written.push(String(text)) > 0),
    );
    spies.push(vi.spyOn(console, "log").mockImplementation((text) => written.push(String(text))) as never);
    const results = (digest: string) =>
      new Map(WAYS.map((way): [Way, FileArrival[]] => [way, [{ digest, rate: 1e9 }]]));
    const file = { path: "file", content: Buffer.alloc(3), digest: "right" };
    const codes = ["right", "wrong"].map((digest) => printFiles([file], results(digest), false));
    for (const spy of spies) spy.mockRestore();
    expect(codes).toEqual([0, 1]);
    expect(written.join("")).toContain("6 digests differ from what was sent");
    expect(written.join("")).toMatch(/1 WRONG .*│ +WRONG │/s);
  });
});
