// Folders for sockets and for compiled programs: another user may have made something there first, under the same name. And the
// cache of programs that `pamir perf` compiles and runs.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, inject, it, vi } from "vitest";
import { compile } from "../../bench/perf/compile.js";
import { pathOf } from "../../src/cli/commands.js";
import { programArguments } from "../../src/start/process/process-program.js";
import { type ProcessesSetup, startProcess } from "../../src/start/process/task-process.js";
import type { Lifecycle } from "../../src/start/tasks/lifecycle.js";
import type { MonitorOrders, TaskExit } from "../../src/start/tasks/monitor.js";
import { makePrivateFolder, whyNotPrivate } from "../../src/support/node/private-folder.js";
import { makeTemporaryFolder } from "../../src/support/node/temporary-folder.js";

const isRoot = process.getuid?.() === 0;
const OTHER_USER = 12_345;
const folder = realpathSync(mkdtempSync(join(inject("folder"), "private-")));
let count = 0;

/** A new folder with that mode. */
function made(mode: number, within = folder): string {
  const path = join(within, `${++count}`);
  mkdirSync(path);
  chmodSync(path, mode);
  return path;
}

function ownedByOther(path: string): string {
  chownSync(path, OTHER_USER, OTHER_USER);
  return path;
}

function linkTo(target: string): string {
  const path = join(folder, `${++count}`);
  symlinkSync(target, path);
  return path;
}

function file(): string {
  const path = join(folder, `${++count}`);
  writeFileSync(path, "", { mode: 0o700 });
  return path;
}

const WRONG: [name: string, make: () => string, why: RegExp][] = [
  ["a link to a folder of this user", () => linkTo(made(0o700)), /is a symbolic link$/],
  ["a link to nothing", () => linkTo(join(folder, "nothing")), /is a symbolic link$|EEXIST|ENOENT/],
  ["a file", file, /is no folder$|EEXIST/],
  ["mode 0755", () => made(0o755), /has mode 0755: other users may use it; make it 0700$/],
  ["mode 0701", () => made(0o701), /has mode 0701/],
  ["mode 0770", () => made(0o770), /has mode 0770/],
  ["a folder in which all may write", () => made(0o700, made(0o777)), /\d has mode 0777: other users may write to it$/],
  ["one below that", () => made(0o700, made(0o755, made(0o777))), /has mode 0777/],
];
const OF_OTHERS: typeof WRONG = [
  ["a folder of another user", () => ownedByOther(made(0o700)), /belongs to user 12345, not to user 0$/],
  ["one in a folder of another user", () => made(0o700, ownedByOther(made(0o755))), /belongs to user 12345$/],
  ["in a sticky folder of another user", () => made(0o700, ownedByOther(made(0o1777))), /belongs to user 12345$/],
];

describe.skipIf(process.platform === "win32")("a private folder", () => {
  it.each([...WRONG, ...(isRoot ? OF_OTHERS : [])])("is not %s", (_, make, why) => {
    const path = make();
    expect(() => makePrivateFolder(path)).toThrow(why);
    if (existsSync(path)) expect(whyNotPrivate(path)).toMatch(why);
  });

  it("is one of this user with mode 0700, also below a sticky folder, and by the name of a link above it", () => {
    const path = join(made(0o1777), "new");
    makePrivateFolder(path);
    expect(lstatSync(path).mode & 0o777).toBe(0o700);
    expect(whyNotPrivate(path)).toBeUndefined();
    makePrivateFolder(join(linkTo(made(0o755)), "new"));
  });
});

describe.skipIf(process.platform === "win32")("a folder below TMPDIR", () => {
  const { TMPDIR } = process.env;
  afterEach(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
    vi.restoreAllMocks();
  });

  it("is made where other users can't replace it, and nowhere else", () => {
    process.env.TMPDIR = made(0o1777);
    const path = makeTemporaryFolder("pamir-it");
    expect([path.startsWith(`${process.env.TMPDIR}/pamir-it-`), lstatSync(path).mode & 0o777]).toEqual([true, 0o700]);
    process.env.TMPDIR = made(0o777);
    expect(() => makeTemporaryFolder("pamir-it")).toThrow(/has mode 0777: other users may write to it$/);
    expect(readdirSync(process.env.TMPDIR)).toEqual([]);
  });

  it("has the program of a process, which comes by --eval instead where there is none", () => {
    process.env.TMPDIR = made(0o777);
    expect(programArguments().args[0]).toBe("--eval");
    process.env.TMPDIR = made(0o1777);
    const { args, remove } = programArguments();
    expect(readFileSync(args[0] as string, "utf8")).toContain("runInThisContext");
    remove();
    expect(readdirSync(process.env.TMPDIR)).toEqual([]);
  });

  it("does not stay where the process can't be started", () => {
    process.env.TMPDIR = made(0o1777);
    const failure = new Error("spawn EMFILE");
    vi.spyOn(process.getBuiltinModule("child_process"), "spawn").mockImplementation(() => {
      throw failure;
    });
    const ends: TaskExit[] = [];
    const lifecycle = { add() {}, isTerminated: () => false, end: (exit: TaskExit) => ends.push(exit) };
    const orders = { bootstraps: [{ task: 1 }] } as unknown as MonitorOrders;
    startProcess(orders, { isDetached: false } as ProcessesSetup, lifecycle as unknown as Lifecycle);
    expect(ends).toMatchObject([{ task: 1, cause: "process", errorCode: "PAMIR_DESCRIPTORS" }]);
    expect(readdirSync(process.env.TMPDIR)).toEqual([]);
  });
});

describe.skipIf(process.platform === "win32")("a program that pamir perf compiles", () => {
  const { XDG_CACHE_HOME, PATH } = process.env;
  afterEach(() => {
    Object.assign(process.env, { PATH });
    if (XDG_CACHE_HOME === undefined) delete process.env.XDG_CACHE_HOME;
    else process.env.XDG_CACHE_HOME = XDG_CACHE_HOME;
  });
  const sources = made(0o700);
  writeFileSync(join(sources, "it.c"), "");
  writeFileSync(join(sources, "common.h"), "");
  /** Makes a program that says which one it is; counts. */
  const compiler = join(sources, "cc");
  const calls = join(sources, "calls");
  const code = `#!/bin/sh\necho >> ${calls}\nfor out; do :; done\nprintf '#!/bin/sh\\necho compiled' > "$out"\nchmod 777 "$out"\n`;
  writeFileSync(compiler, code, { mode: 0o700 });
  const called = (): number => (existsSync(calls) ? readFileSync(calls).length : 0);
  const said = (path: string): string => spawnSync(path, { encoding: "utf8" }).stdout;

  it("is in the user's cache, made once, for this user alone", () => {
    const cache = made(0o755);
    process.env.XDG_CACHE_HOME = cache;
    const before = called();
    const program = compile(compiler, sources, "it");
    expect(program.startsWith(join(cache, "pamir/it-"))).toBe(true);
    expect([lstatSync(join(cache, "pamir")).mode & 0o777, lstatSync(program).mode & 0o777]).toEqual([0o700, 0o700]);
    expect(compile(compiler, sources, "it")).toBe(program);
    expect(called()).toBe(before + 1);
    expect(said(program)).toBe("compiled\n");
    expect(readdirSync(join(cache, "pamir"))).toHaveLength(1);
  });

  const plantOpen = (program: string, planted: string): void => renameSync(planted, program);
  const plantOfOther = (program: string, planted: string): void => {
    chmodSync(planted, 0o755);
    renameSync(ownedByOther(planted), program);
  };

  it.each<[name: string, plant: (program: string, planted: string) => void]>([
    ["a link", (program, planted) => symlinkSync(planted, program)],
    ["a link to nothing", (program) => symlinkSync(join(folder, "victim"), program)],
    ["a folder", (program) => mkdirSync(program)],
    ["a program that others may change", plantOpen],
    ["one of another user", isRoot ? plantOfOther : plantOpen],
  ])("is not %s in its place", (_, plant) => {
    process.env.XDG_CACHE_HOME = made(0o755);
    const program = compile(compiler, sources, "it");
    renameSync(program, join(folder, `${++count}`));
    const planted = join(folder, `${++count}`);
    writeFileSync(planted, "#!/bin/sh\necho planted");
    chmodSync(planted, 0o777);
    plant(program, planted);
    expect(said(compile(compiler, sources, "it"))).toBe("compiled\n");
    expect(existsSync(join(folder, "victim"))).toBe(false);
    if (existsSync(planted)) expect(readFileSync(planted, "utf8")).toContain("planted");
  });

  it.each(WRONG)("lies elsewhere where the cache is %s", (_, make) => {
    const cache = made(0o755);
    process.env.XDG_CACHE_HOME = cache;
    const wrong = make();
    symlinkSync(wrong, join(cache, "pamir"));
    const program = compile(compiler, sources, "it");
    expect(program).toMatch(/\/pamir-peers-\w+\/it-/);
    expect(said(program)).toBe("compiled\n");
  });

  it("is made by a compiler in an absolute folder of PATH", () => {
    const here = process.cwd();
    const relative = mkdtempSync(join(here, ".tmp-path-"));
    try {
      writeFileSync(join(relative, "pamir-cc"), "#!/bin/sh\n", { mode: 0o700 });
      process.env.PATH = [relative.slice(here.length + 1), "", "."].join(":");
      expect(pathOf("pamir-cc")).toBeUndefined();
      process.env.PATH = `.:${folder}:${relative}`;
      expect(pathOf("pamir-cc")).toBe(join(relative, "pamir-cc"));
      expect(pathOf("pamir-none")).toBeUndefined();
    } finally {
      spawnSync("rm", ["-r", relative]);
    }
  });
});
