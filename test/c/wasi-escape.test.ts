// A program stays within the folders that it was given: each rule, for files of a host and in memory. Outside lies a secret.

import * as fs from "node:fs";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FileAccess, Folder } from "../../src/c/wasi/files.js";
import { hostFolder } from "../../src/c/wasi/host-files.js";
import { MemoryFolder } from "../../src/c/wasi/memory-files.js";
import { walk } from "../../src/c/wasi/paths.js";
import { runProgram } from "./run-program.js";

const READ: FileAccess = { reads: true, writes: false, creates: false, exclusive: false, truncates: false };
const WRITE: FileAccess = { ...READ, reads: false, writes: true };

/** `outside` holds the secret, and `inside` is what a program is given. */
let outside: string;
let inside: string;
beforeEach(() => {
  outside = mkdtempSync(join(tmpdir(), "pamir-wasi-"));
  inside = join(outside, "inside");
  mkdirSync(join(inside, "sub", "deep"), { recursive: true });
  writeFileSync(join(outside, "secret"), "secret");
  writeFileSync(join(inside, "own"), "own");
});
afterEach(() => {
  // Whatever a program tried, outside is as it was.
  expect(readdirSync(outside).sort()).toEqual(["inside", "secret"]);
  expect(readFileSync(join(outside, "secret"), "utf8")).toBe("secret");
  rmSync(outside, { recursive: true });
});

const makers: [kind: string, make: () => Folder][] = [
  [
    "memory",
    () => {
      const tree = { inside: { own: "own", sub: { deep: {} } }, secret: "secret" };
      return MemoryFolder.of(tree, () => Date.now()).folder("inside");
    },
  ],
  ["host", () => hostFolder(inside)],
];

/** What each call of escape.c says of a path. */
function tried(folder: Folder, path: string, args: string[]): Record<string, string>[] {
  const { out } = runProgram("escape", { args, folders: [{ path, folder }] });
  return out
    .split("\n")
    .slice(0, args.length)
    .map((line) =>
      Object.fromEntries(
        [...line.matchAll(/(?::|,) (\w+) ([^,]+)/g)].map(([, call, result]) => [call as string, result as string]),
      ),
    );
}

const REFUSED = "Capabilities insufficient";
const CALLS = ["read", "write", "stat", "mkdir", "rename", "link", "unlink"];
const ALL_REFUSED = Object.fromEntries(CALLS.map((call) => [call, REFUSED]));

describe.each(makers)("a program with files in %s", (kind, make) => {
  it.each([
    "../secret",
    "../../etc/passwd",
    "..",
    "sub/../../secret",
    "sub/deep/../../../secret",
    "./../secret",
    "../inside/own",
  ])("does not leave by %s", (path) => {
    expect(tried(make(), ".", [path])).toEqual([ALL_REFUSED]);
  });

  it("does not leave by a path that is absolute where it arrives", () => {
    const folder = make();
    // A C library strips what it knows a folder by: of "//etc", "/" leaves a second slash or none.
    for (const path of ["/etc/passwd", "//etc/passwd", join(outside, "secret")]) {
      const [results] = tried(folder, "/", [path]);
      expect(results?.read).toBe("No such file or directory");
      expect(() => walk(folder, path, true)).toThrow("WASI error NOTCAPABLE");
    }
  });

  it("makes no link with an absolute path", () => {
    const folder = make();
    expect(runProgram("escape", { folders: [{ path: ".", folder }] }).out).toBe(`symlink ${REFUSED}\n`);
    expect(folder.status("made")).toBeUndefined();
  });

  it("does not leave by a link: to a file, to a folder, relative, absolute, by way of another link", () => {
    const folder = make();
    const target = kind === "host" ? outside : "/";
    folder.createLink("relative", "../secret");
    folder.createLink("absolute", join(target, "secret"));
    folder.createLink("folder", "..");
    folder.createLink("root", target);
    folder.createLink("second", "relative");
    folder.folder("sub").createLink("up", "../../secret");
    folder.folder("sub").createLink("within", "../own");
    expect(walk(folder, "sub/within", true)).toMatchObject({ folder, name: "own", status: { size: 3n } });
    const through = ["folder/secret", "root/secret", "folder/inside/own", "sub/../folder/secret", "folder/../secret"];
    expect(tried(folder, ".", through)).toEqual(through.map(() => ALL_REFUSED));
    const last = ["second", "relative", "absolute", "sub/up", "folder", "root"];
    for (const [i, results] of tried(folder, ".", last).entries()) {
      // The other calls concern the link itself.
      expect([last[i], results.read, results.write, results.stat]).toEqual([last[i], REFUSED, REFUSED, REFUSED]);
    }
  });

  it("makes nothing where a link leads out to nothing", () => {
    const folder = make();
    folder.createLink("dangling", "../made");
    expect(tried(folder, ".", ["dangling"])[0]).toMatchObject({ write: REFUSED });
    expect(existsSync(join(outside, "made"))).toBe(false);
  });

  it("does not leave the folder of a descriptor upwards", () => {
    const sub = make().folder("sub");
    for (const path of ["../own", "..", "deep/../../own"]) expect(() => walk(sub, path, true)).toThrow("NOTCAPABLE");
    expect(walk(sub, "deep/..", true)).toMatchObject({ name: ".", folder: sub });
  });

  it("finds no end in links that lead to each other", () => {
    const folder = make();
    folder.createLink("one", "two");
    folder.createLink("two", "one");
    expect(tried(folder, ".", ["one"])[0]).toMatchObject({ read: "Symbolic link loop", stat: "Symbolic link loop" });
  });

  it("opens, dates and links no link that took a file's place after the walk", () => {
    const folder = make();
    folder.createLink("l", "../secret");
    expect(() => folder.open("l", READ)).toThrow("WASI error LOOP");
    expect(() => folder.open("l", WRITE)).toThrow("WASI error LOOP");
    expect(() => folder.open("l", { ...WRITE, truncates: true })).toThrow("WASI error LOOP");
    expect(() => folder.folder("l")).toThrow("WASI error NOTDIR");
    expect(() => folder.link("l", folder, "m")).toThrow("WASI error NOTSUP");
    const { mtimeMs } = fs.statSync(join(outside, "secret"));
    folder.setTimes("l", 0n, 0n);
    expect(fs.statSync(join(outside, "secret")).mtimeMs).toBe(mtimeMs);
  });
});

describe("files of a host", () => {
  it("have names without separators, and none leads up", () => {
    const folder = hostFolder(inside);
    const windows = hostFolder(inside, { isWindows: true });
    for (const name of ["..", "../secret", "sub/deep"]) expect(() => folder.status(name)).toThrow("NOTCAPABLE");
    for (const name of ["..\\secret", "C:secret", "own:stream"]) {
      expect(() => windows.status(name)).toThrow("NOTCAPABLE");
      expect(folder.status(name)).toBeUndefined();
    }
  });

  it("are not appended to by a link that took a file's name", () => {
    const folder = hostFolder(inside);
    const file = folder.open("own", WRITE);
    rmSync(join(inside, "own"));
    symlinkSync("../secret", join(inside, "own"));
    file.append(new Uint8Array([33]));
    expect(file.status().size).toBe(4n);
    file.close();
  });
});
