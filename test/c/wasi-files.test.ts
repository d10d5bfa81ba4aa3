// Files of a host and in memory: one suite. A test runs in a folder of its own.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FileAccess, Folder } from "../../src/c/wasi/files.js";
import { hostFolder } from "../../src/c/wasi/host-files.js";
import { MemoryFolder, type MemoryTree } from "../../src/c/wasi/memory-files.js";
import { FILETYPE } from "../../src/c/wasi/numbers.js";

const READ: FileAccess = { reads: true, writes: false, creates: false, exclusive: false, truncates: false };
const WRITE: FileAccess = { ...READ, writes: true };
const CREATE: FileAccess = { ...WRITE, creates: true };

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "pamir-wasi-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function fillHost(path: string, tree: MemoryTree): void {
  for (const [name, value] of Object.entries(tree)) {
    if (typeof value === "string" || value instanceof Uint8Array) writeFileSync(join(path, name), value);
    else {
      mkdirSync(join(path, name));
      fillHost(join(path, name), value);
    }
  }
}

const text = (folder: Folder, name: string): string => {
  const file = folder.open(name, READ);
  const bytes = new Uint8Array(64);
  const count = file.read(bytes, 0);
  file.close();
  return new TextDecoder().decode(bytes.subarray(0, count));
};
const bytesOf = (written: string): Uint8Array => new TextEncoder().encode(written);
const put = (folder: Folder, name: string, written: string): void => {
  const file = folder.open(name, { ...CREATE, truncates: true });
  expect(file.write(bytesOf(written), 0)).toBe(written.length);
  file.close();
};
const names = (folder: Folder): string[] =>
  folder
    .entries()
    .map(({ name }) => name)
    .sort();

describe.each([
  ["memory", (tree: MemoryTree): Folder => MemoryFolder.of(tree, () => performance.timeOrigin + performance.now())],
  [
    "host",
    (tree: MemoryTree): Folder => {
      fillHost(root, tree);
      return hostFolder(root);
    },
  ],
])("files in %s", (_kind, make) => {
  const fails = (what: () => unknown, errno: string): void => expect(what).toThrow(new RegExp(`WASI error ${errno}$`));

  it("are read from any place, and end", () => {
    const file = make({ a: "hello" }).open("a", READ);
    const into = new Uint8Array(8).fill(1);
    expect([file.read(into, 0), file.read(into.subarray(6), 3), file.read(into, 5), file.read(into, 99)]).toEqual([
      5, 2, 0, 0,
    ]);
    expect([...into]).toEqual([...bytesOf("hello"), 1, ...bytesOf("lo")]);
  });

  it("are read into shared memory, and written from there", () => {
    const folder = make({ a: "hello" });
    const shared = new Uint8Array(new SharedArrayBuffer(16));
    expect(folder.open("a", READ).read(shared.subarray(3), 0)).toBe(5);
    expect(folder.open("b", CREATE).write(shared.subarray(3, 7), 0)).toBe(4);
    expect(text(folder, "b")).toBe("hell");
  });

  it("grow by a write behind the end, with zeros between", () => {
    const folder = make({ a: "ab" });
    expect(folder.open("a", WRITE).write(bytesOf("z"), 4)).toBe(1);
    expect(text(folder, "a")).toBe("ab\0\0z");
  });

  it("are cut and lengthened; what is cut off is zero afterwards", () => {
    const folder = make({ a: "abcdef" });
    const file = folder.open("a", WRITE);
    file.write(bytesOf("ABC"), 0);
    file.setSize(2);
    file.setSize(4);
    expect([text(folder, "a"), file.status().size]).toEqual(["AB\0\0", 4n]);
    fails(() => file.setSize(2 ** 52), "(FBIG|INVAL)");
  });

  it("are appended to where another writer has left the end, and pwrite() keeps its place", () => {
    const folder = make({ a: "1" });
    const [one, other] = [folder.open("a", WRITE), folder.open("a", WRITE)];
    one.append(bytesOf("22"));
    other.append(bytesOf("333"));
    one.append(bytesOf("4"));
    one.write(bytesOf("x"), 0);
    expect(text(folder, "a")).toBe("x223334");
    folder.removeFile("a");
    put(folder, "a", "new");
    const third = folder.open("a", WRITE);
    folder.rename("a", folder, "b");
    put(folder, "a", "other");
    third.append(bytesOf("!"));
    expect([text(folder, "a"), text(folder, "b")]).toEqual(["other", "new!"]);
    for (const file of [one, other, third]) file.close();
  });

  it("stay open when their name is gone", () => {
    const folder = make({ a: "kept" });
    const file = folder.open("a", WRITE);
    folder.removeFile("a");
    const into = new Uint8Array(4);
    expect([file.read(into, 0), file.status().links]).toEqual([4, 0n]);
    expect(file.append(bytesOf("!"))).toBe(1);
    expect(file.status().size).toBe(5n);
    fails(() => folder.open("a", READ), "NOENT");
  });

  it("are made, or must not be there, or are emptied", () => {
    const folder = make({ a: "old" });
    fails(() => folder.open("b", WRITE), "NOENT");
    fails(() => folder.open("a", { ...CREATE, exclusive: true }), "EXIST");
    folder.open("b", { ...CREATE, exclusive: true }).close();
    folder.open("a", CREATE).close();
    expect([text(folder, "a"), text(folder, "b")]).toEqual(["old", ""]);
    folder.open("a", { ...WRITE, truncates: true }).close();
    expect(text(folder, "a")).toBe("");
  });

  it("are not opened as folders, nor folders as files, nor links as what they lead to", () => {
    const folder = make({ a: "", d: {} });
    folder.createLink("l", "a");
    fails(() => folder.open("d", READ), "ISDIR");
    fails(() => folder.open("l", READ), "LOOP");
    fails(() => folder.open("l", CREATE), "LOOP");
    fails(() => folder.open("l", { ...CREATE, exclusive: true }), "EXIST");
    fails(() => folder.folder("a"), "NOTDIR");
    fails(() => folder.folder("l"), "NOTDIR");
    fails(() => folder.folder("none"), "NOENT");
  });

  it("have a status: kind, size, links, inode; a link has its own", () => {
    const folder = make({ a: "four", d: {} });
    folder.createLink("l", "a");
    folder.link("a", folder, "b");
    const [a, b] = [folder.status("a"), folder.status("b")];
    expect(a).toMatchObject({ type: FILETYPE.file, size: 4n, links: 2n });
    expect(b?.inode).toBe(a?.inode);
    expect(folder.open("b", READ).status()).toMatchObject({ inode: a?.inode, device: a?.device });
    expect(folder.status("l")).toMatchObject({ type: FILETYPE.link, size: 1n });
    expect(folder.status("d")?.type).toBe(FILETYPE.folder);
    expect(folder.status(".")?.type).toBe(FILETYPE.folder);
    expect(folder.status("none")).toBeUndefined();
    expect(folder.folder("d").status(".")?.inode).toBe(folder.status("d")?.inode);
    expect(folder.readLink("l")).toBe("a");
    fails(() => folder.readLink("a"), "INVAL");
    fails(() => folder.readLink("none"), "NOENT");
  });

  it("have times, which a write renews and a program sets; those of a link are its own", () => {
    const folder = make({ a: "" });
    folder.createLink("l", "a");
    folder.setTimes("a", 5_000_000_000n, 7_500_000_000n);
    folder.setTimes("l", 1_000_000_000n, 2_000_000_000n);
    expect(folder.status("a")).toMatchObject({ accessed: 5_000_000_000n, modified: 7_500_000_000n });
    expect(folder.status("l")?.modified).toBe(2_000_000_000n);
    const file = folder.open("a", WRITE);
    file.write(bytesOf("x"), 0);
    const now = BigInt(Date.now()) * 1_000_000n;
    expect(Number(now - file.status().modified)).toBeLessThan(5e9);
    file.setTimes(3_000_000_000n, 4_000_000_000n);
    expect(folder.status("a")).toMatchObject({ accessed: 3_000_000_000n, modified: 4_000_000_000n });
    folder.setTimes(".", 1_000_000_000n, 9_000_000_000n);
    expect(folder.status(".")?.modified).toBe(9_000_000_000n);
    fails(() => folder.setTimes("none", 0n, 0n), "NOENT");
  });

  it("are listed with their kinds", () => {
    const folder = make({ a: "", d: { inner: "" }, ünïcode: "" });
    folder.createLink("l", "none");
    expect(names(folder)).toEqual(["a", "d", "l", "ünïcode"]);
    for (const { name, type, inode } of folder.entries()) {
      expect(folder.status(name)).toMatchObject({ type, inode });
      expect(inode).not.toBe(0n);
    }
    expect(names(folder.folder("d"))).toEqual(["inner"]);
  });

  it("are removed: files as files, folders as folders that are empty, links themselves", () => {
    const folder = make({ a: "", d: { inner: "" } });
    folder.createLink("l", "d");
    fails(() => folder.removeFile("d"), "ISDIR");
    fails(() => folder.removeFolder("a"), "NOTDIR");
    fails(() => folder.removeFolder("l"), "NOTDIR");
    fails(() => folder.removeFolder("d"), "NOTEMPTY");
    fails(() => folder.removeFile("none"), "NOENT");
    fails(() => folder.removeFolder("none"), "NOENT");
    folder.removeFile("l");
    const inner = folder.folder("d");
    inner.removeFile("inner");
    folder.removeFolder("d");
    folder.removeFile("a");
    expect(names(folder)).toEqual([]);
    fails(() => inner.open("b", CREATE), "NOENT");
    fails(() => inner.createFolder("b"), "NOENT");
    fails(() => inner.createLink("b", "x"), "NOENT");
  });

  it("take no name that there is", () => {
    const folder = make({ a: "", d: {} });
    fails(() => folder.createFolder("a"), "EXIST");
    fails(() => folder.createFolder("d"), "EXIST");
    fails(() => folder.createLink("a", "x"), "EXIST");
    fails(() => folder.link("a", folder, "d"), "EXIST");
    fails(() => folder.link("d", folder, "e"), "PERM");
    fails(() => folder.link("none", folder, "e"), "NOENT");
    folder.createLink("l", "a");
    fails(() => folder.link("l", folder, "e"), "NOTSUP");
  });

  it("are renamed as POSIX says", () => {
    const folder = make({ a: "a", b: "b", d: { inner: "" }, empty: {} });
    const d = folder.folder("d");
    folder.rename("a", d, "a");
    expect([names(d), text(d, "a")]).toEqual([["a", "inner"], "a"]);
    folder.rename("b", d, "a");
    expect([names(folder), text(d, "a")]).toEqual([["d", "empty"], "b"]);
    fails(() => folder.rename("d", d, "within"), "INVAL");
    fails(() => folder.rename("empty", folder, "d"), "NOTEMPTY");
    fails(() => d.rename("a", folder, "empty"), "ISDIR");
    fails(() => folder.rename("empty", d, "a"), "NOTDIR");
    fails(() => folder.rename("none", folder, "d"), "NOENT");
    folder.rename("d", folder, "empty");
    expect([names(folder), names(folder.folder("empty"))]).toEqual([["empty"], ["a", "inner"]]);
    folder.folder("empty").link("a", folder, "second");
    folder.rename("second", folder.folder("empty"), "a");
    expect(text(folder, "second")).toBe("b");
    folder.createFolder("moved");
    folder.rename("moved", folder.folder("empty"), "moved");
    fails(() => folder.rename("empty", folder.folder("empty").folder("moved"), "within"), "INVAL");
  });

  it("are not renamed to another kind of folder", () => {
    const folder = make({ a: "" });
    const other = mkdtempSync(join(tmpdir(), "pamir-wasi-"));
    for (const to of [MemoryFolder.of({}, () => 0), hostFolder(other)]) {
      if (to.constructor === folder.constructor) continue;
      fails(() => folder.rename("a", to, "a"), "XDEV");
      fails(() => folder.link("a", to, "a"), "XDEV");
    }
    rmSync(other, { recursive: true });
  });
});

describe("files in memory", () => {
  it("leave given arrays as they are, and give copies of their contents", () => {
    const given = bytesOf("given");
    const folder = MemoryFolder.of({ d: { a: given, b: "" } }, () => 0);
    const inner = folder.folder("d");
    inner.open("a", WRITE).write(bytesOf("G"), 0);
    inner.open("b", WRITE).append(bytesOf("b".repeat(10_000)));
    expect(new TextDecoder().decode(given)).toBe("given");
    expect(new TextDecoder().decode(folder.contents("d/a"))).toBe("Given");
    expect(folder.contents("d/b")?.length).toBe(10_000);
    expect([folder.contents("d"), folder.contents("d/a/x"), folder.contents("none")]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    folder.contents("d/a")?.fill(0);
    expect(text(inner, "a")).toBe("Given");
  });

  it("are cut without a change to a given array", () => {
    const given = bytesOf("given");
    const file = MemoryFolder.of({ a: given }, () => 0).open("a", WRITE);
    file.setSize(1);
    file.setSize(5);
    const into = new Uint8Array(5);
    file.read(into, 0);
    expect([new TextDecoder().decode(into), new TextDecoder().decode(given)]).toEqual(["g\0\0\0\0", "given"]);
  });
});

describe("files of a host", () => {
  it("are below a folder that exists; links in its own path are followed", () => {
    mkdirSync(join(root, "real"));
    writeFileSync(join(root, "real", "a"), "found");
    symlinkSync(join(root, "real"), join(root, "link"));
    expect(text(hostFolder(join(root, "link")), "a")).toBe("found");
    expect(() => hostFolder(join(root, "none"))).toThrow("WASI error NOENT");
    expect(() => hostFolder(join(root, "real", "a"))).toThrow("WASI error NOTDIR");
  });
});
