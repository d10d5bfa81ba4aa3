// Calls of WASI as a program makes them, with pointers into its memory: results, places, and error numbers.
import { beforeEach, describe, expect, it, vi } from "vitest";
import { ProgramExit, ProgramSignal } from "../../src/c/exit.js";
import type { WasiHost } from "../../src/c/wasi/host.js";
import { MemoryFolder } from "../../src/c/wasi/memory-files.js";
import { ERRNO, FILE_RIGHTS, FILETYPE, FLAG, FOLDER_RIGHTS, OPEN, RIGHT } from "../../src/c/wasi/numbers.js";
import { wasiProgram } from "../../src/c/wasi/wasi.js";
import { testHost } from "./run-program.js";

const E = Object.fromEntries([["OK", 0], ...Object.entries(ERRNO)]) as Record<keyof typeof ERRNO | "OK", number>;
const BYTES = 65_536;
const BEYOND = BYTES - 3;
/** Where results, vectors, texts and buffers of the tests lie. */
const [RESULT, VECTORS, TEXT, OTHER, BUFFER] = [16, 256, 1024, 2048, 4096];
const ALL_RIGHTS = FILE_RIGHTS | FOLDER_RIGHTS;

type Call = (...args: (number | bigint)[]) => number;

describe.each([
  ["plain", () => new WebAssembly.Memory({ initial: 1, maximum: 8 })],
  ["shared", () => new WebAssembly.Memory({ initial: 1, maximum: 8, shared: true })],
])("calls of a program in %s memory", (_kind, makeMemory) => {
  let memory: WebAssembly.Memory;
  let wasi: Record<string, Call>;
  let close: () => void;
  let folder: MemoryFolder;
  let written: [number, string][];
  let time: number;

  /** Fakes time: a sleep ends at once, and the clocks go on. */
  function start(host: Partial<WasiHost> = {}): void {
    memory = makeMemory();
    written = [];
    time = 1000;
    folder = MemoryFolder.of({ a: "hello", d: { inner: "inner" } }, () => 1_700_000_000_000 + time);
    const program = wasiProgram(
      testHost(memory, {
        args: ["program", "ü"],
        env: { A: "1" },
        input: "typed",
        folders: [{ path: "/given", folder }],
        host: {
          write: (stream, bytes) => {
            expect(bytes.buffer).toBeInstanceOf(ArrayBuffer);
            written.push([stream, new TextDecoder().decode(bytes)]);
          },
          now: () => time,
          wallTime: () => 1_700_000_000_000 + time,
          sleep: (milliseconds) => {
            time += milliseconds;
          },
          ...host,
        },
      }),
    );
    wasi = program.imports as unknown as Record<string, Call>;
    close = program.close;
  }
  beforeEach(() => start());

  const call = (name: string, ...args: (number | bigint)[]): number => (wasi[name] as Call)(...args);
  const view = (): DataView => new DataView(memory.buffer);
  const u32 = (at: number): number => view().getUint32(at, true);
  const u64 = (at: number): bigint => view().getBigUint64(at, true);
  const put = (text: string, at = TEXT): [number, number] => {
    const bytes = new TextEncoder().encode(text);
    new Uint8Array(memory.buffer).set(bytes, at);
    return [at, bytes.length];
  };
  const get = (at: number, count: number): string =>
    new TextDecoder().decode(new Uint8Array(memory.buffer).slice(at, at + count));
  const vectors = (...parts: [at: number, count: number][]): [number, number] => {
    for (const [i, [at, count]] of parts.entries()) {
      view().setUint32(VECTORS + i * 8, at, true);
      view().setUint32(VECTORS + i * 8 + 4, count, true);
    }
    return [VECTORS, parts.length];
  };
  const open = (path: string, { how = 0, rights = ALL_RIGHTS, flags = 0, look = 1, fd = 3 } = {}): number =>
    call("path_open", fd, look, ...put(path), how, rights, ALL_RIGHTS, flags, RESULT);
  /** The descriptor of what is opened. */
  const opened = (path: string, options: Parameters<typeof open>[1] = {}): number => {
    expect(open(path, options)).toBe(E.OK);
    return u32(RESULT);
  };
  const READS = RIGHT.read | RIGHT.seek | RIGHT.tell | RIGHT.readFolder;

  it("give arguments and variables, each ended by 0", () => {
    expect(call("args_sizes_get", RESULT, RESULT + 4)).toBe(E.OK);
    expect([u32(RESULT), u32(RESULT + 4)]).toEqual([2, 11]);
    expect(call("args_get", VECTORS, BUFFER)).toBe(E.OK);
    expect([u32(VECTORS), u32(VECTORS + 4), get(BUFFER, 11)]).toEqual([BUFFER, BUFFER + 8, "program\0ü\0"]);
    expect(call("environ_sizes_get", RESULT, RESULT + 4)).toBe(E.OK);
    expect([u32(RESULT), u32(RESULT + 4)]).toEqual([1, 4]);
    expect(call("environ_get", VECTORS, BUFFER)).toBe(E.OK);
    expect(get(u32(VECTORS), 4)).toBe("A=1\0");
  });

  it("fail by EFAULT for each pointer beyond the memory, and pointers above 2^31 are no negative ones", () => {
    for (const at of [BEYOND, -1, 0x8000_0000 | 0]) {
      expect(call("args_sizes_get", RESULT, at)).toBe(E.FAULT);
      expect(call("args_get", VECTORS, at)).toBe(E.FAULT);
      expect(call("clock_time_get", 0, 0n, at)).toBe(E.FAULT);
      expect(call("random_get", at, 100)).toBe(E.FAULT);
      expect(call("fd_write", 1, ...vectors([at, 100]), RESULT)).toBe(E.FAULT);
      expect(call("fd_write", 1, at, 1, RESULT)).toBe(E.FAULT);
      expect(call("fd_write", 1, ...vectors([BUFFER, 1]), at)).toBe(E.FAULT);
      expect(call("fd_read", 0, ...vectors([BUFFER, 1]), at)).toBe(E.FAULT);
      expect(call("fd_fdstat_get", 1, at)).toBe(E.FAULT);
      expect(call("fd_filestat_get", 3, at)).toBe(E.FAULT);
      expect(call("fd_prestat_get", 3, at)).toBe(E.FAULT);
      expect(call("fd_prestat_dir_name", 3, at, 6)).toBe(E.FAULT);
      expect(call("fd_readdir", 3, at, 100, 0n, RESULT)).toBe(E.FAULT);
      expect(call("path_open", 3, 0, at, 100, 0, 0n, 0n, 0, RESULT)).toBe(E.FAULT);
      expect(call("path_open", 3, 0, ...put("new"), OPEN.create, 0n, 0n, 0, at)).toBe(E.FAULT);
      expect(call("poll_oneoff", at, BUFFER, 1, RESULT)).toBe(E.FAULT);
      expect(call("poll_oneoff", BUFFER, at, 1, RESULT)).toBe(E.FAULT);
    }
    expect(written).toEqual([]);
    expect(folder.status("new")).toBeUndefined();
    expect(call("fd_read", 0, ...vectors([BUFFER, 9]), RESULT)).toBe(E.OK);
    expect(get(BUFFER, u32(RESULT))).toBe("typed");
  });

  it("see a memory that has grown", () => {
    expect(call("clock_res_get", 1, BYTES + 8)).toBe(E.FAULT);
    memory.grow(1);
    expect(call("clock_res_get", 1, BYTES + 8)).toBe(E.OK);
    expect(u64(BYTES + 8)).toBe(1000n);
  });

  it("tell the time of four clocks, in nanoseconds", () => {
    time += 0.25;
    const of = (clock: number): bigint => {
      expect(call("clock_time_get", clock, 0n, RESULT)).toBe(E.OK);
      return u64(RESULT);
    };
    expect([of(0), of(1), of(2), of(3)]).toEqual([1_700_000_001_000_250_000n, 1_000_250_000n, 250_000n, 250_000n]);
    expect(call("clock_time_get", 4, 0n, RESULT)).toBe(E.INVAL);
    expect(call("clock_res_get", 4, RESULT)).toBe(E.INVAL);
  });

  it("draw any number of random bytes, and not one more", () => {
    memory.grow(3);
    const bytes = new Uint8Array(memory.buffer);
    // Browsers refuse shared memory, which Node takes.
    const draw = vi.spyOn(crypto, "getRandomValues");
    expect(call("random_get", BUFFER, 150_001)).toBe(E.OK);
    const drawn = draw.mock.calls.map(([array]) => array as Uint8Array);
    draw.mockRestore();
    expect(drawn.map(({ length }) => length)).toEqual([65_536, 65_536, 18_929]);
    for (const { buffer } of drawn) expect(buffer).not.toBe(memory.buffer);
    const zeros = bytes.slice(BUFFER, BUFFER + 150_001).filter((byte) => byte === 0).length;
    expect(zeros).toBeGreaterThan(300);
    expect(zeros).toBeLessThan(1000);
    expect(bytes.slice(BUFFER + 150_001).every((byte) => byte === 0)).toBe(true);
  });

  it("end the program, and close its files", () => {
    const fd = opened("a");
    expect(() => call("proc_exit", -1)).toThrow(ProgramExit);
    expect(() => call("proc_exit", 300)).toThrow("the program ended with exit code 300");
    expect(call("fd_tell", fd, RESULT)).toBe(E.BADF);
    expect(call("proc_raise", 0)).toBe(E.OK);
    expect(() => call("proc_raise", 6)).toThrow("the program called abort()");
    expect(() => call("proc_raise", 11)).toThrow(new ProgramSignal(11));
    expect(call("sched_yield")).toBe(E.OK);
  });

  it("are closed by the program's host", () => {
    const fd = opened("a");
    close();
    expect(call("fd_tell", fd, RESULT)).toBe(E.BADF);
    expect(call("fd_write", 1, ...vectors([BUFFER, 1]), RESULT)).toBe(E.BADF);
  });

  it("know no sockets", () => {
    const names = ["sock_accept", "sock_recv", "sock_send", "sock_shutdown"];
    expect(names.map((name) => call(name, 3, 0, 0, 0, 0, 0))).toEqual(names.map(() => E.NOTSUP));
  });

  it("are all of wasi_snapshot_preview1", () => {
    expect(Object.keys(wasi)).toHaveLength(46);
  });

  describe("on standard streams", () => {
    it("write what several vectors hold at once", () => {
      put("one, ", BUFFER);
      put("two", OTHER);
      expect(call("fd_write", 2, ...vectors([BUFFER, 5], [BEYOND, 0], [OTHER, 3]), RESULT)).toBe(E.OK);
      expect([u32(RESULT), written]).toEqual([8, [[2, "one, two"]]]);
      expect(call("fd_write", 1, ...vectors([BUFFER, 3]), RESULT)).toBe(E.OK);
      expect(call("fd_write", 1, VECTORS, 0, RESULT)).toBe(E.OK);
      expect([u32(RESULT), written[1], written.length]).toEqual([0, [1, "one"], 2]);
      expect(call("fd_write", 1, VECTORS, 1025, RESULT)).toBe(E.INVAL);
    });

    it("read into several vectors, until the end", () => {
      expect(call("fd_read", 0, ...vectors([BUFFER, 2], [OTHER, 2]), RESULT)).toBe(E.OK);
      expect([u32(RESULT), get(BUFFER, 2), get(OTHER, 2)]).toEqual([4, "ty", "pe"]);
      expect(call("fd_read", 0, ...vectors([BUFFER, 2], [OTHER, 2]), RESULT)).toBe(E.OK);
      expect([u32(RESULT), get(BUFFER, 2)]).toEqual([1, "dy"]);
      expect(call("fd_read", 0, ...vectors([BUFFER, 2]), RESULT)).toBe(E.OK);
      expect(u32(RESULT)).toBe(0);
    });

    it("are character devices that can't seek", () => {
      for (const fd of [0, 1, 2]) {
        expect(call("fd_fdstat_get", fd, RESULT)).toBe(E.OK);
        expect(view().getUint8(RESULT)).toBe(FILETYPE.characterDevice);
        expect(u64(RESULT + 8) & (RIGHT.seek | RIGHT.tell)).toBe(0n);
        expect(call("fd_filestat_get", fd, RESULT)).toBe(E.OK);
        expect(view().getUint8(RESULT + 16)).toBe(FILETYPE.characterDevice);
        expect(call("fd_seek", fd, 0n, 1, RESULT)).toBe(E.SPIPE);
        expect(call("fd_tell", fd, RESULT)).toBe(E.SPIPE);
        expect(call("fd_pread", fd, ...vectors([BUFFER, 1]), 0n, RESULT)).toBe(E.SPIPE);
        expect(call("fd_readdir", fd, BUFFER, 100, 0n, RESULT)).toBe(E.NOTDIR);
      }
      expect(call("fd_write", 0, ...vectors([BUFFER, 1]), RESULT)).toBe(E.NOTCAPABLE);
      expect(call("fd_read", 1, ...vectors([BUFFER, 1]), RESULT)).toBe(E.NOTCAPABLE);
    });
  });

  describe("on descriptors", () => {
    it("refuse numbers that are none", () => {
      for (const fd of [4, 99, -1]) {
        expect(call("fd_close", fd)).toBe(E.BADF);
        expect(call("fd_read", fd, ...vectors([BUFFER, 1]), RESULT)).toBe(E.BADF);
        expect(call("fd_write", fd, ...vectors([BUFFER, 1]), RESULT)).toBe(E.BADF);
        expect(call("fd_fdstat_get", fd, RESULT)).toBe(E.BADF);
        expect(call("fd_prestat_get", fd, RESULT)).toBe(E.BADF);
        expect(call("fd_renumber", 1, fd)).toBe(E.BADF);
        expect(call("fd_renumber", fd, 1)).toBe(E.BADF);
        expect(open("a", { fd })).toBe(E.BADF);
      }
    });

    it("give the least free number, and move one to another", () => {
      expect([opened("a", { rights: READS }), opened("a", { rights: READS })]).toEqual([4, 5]);
      expect(call("fd_close", 4)).toBe(E.OK);
      expect(call("fd_close", 4)).toBe(E.BADF);
      expect(opened("d", { rights: READS })).toBe(4);
      expect(call("fd_renumber", 5, 4)).toBe(E.OK);
      expect(call("fd_tell", 5, RESULT)).toBe(E.BADF);
      expect(call("fd_read", 4, ...vectors([BUFFER, 9]), RESULT)).toBe(E.OK);
      expect(get(BUFFER, u32(RESULT))).toBe("hello");
      expect(call("fd_renumber", 4, 4)).toBe(E.OK);
      expect(call("fd_tell", 4, RESULT)).toBe(E.OK);
    });

    it("are no more than 1024", () => {
      for (let fd = 4; fd < 1024; fd++) expect(open("a", { rights: READS })).toBe(E.OK);
      expect(open("new", { how: OPEN.create })).toBe(E.MFILE);
      expect(folder.status("new")).toBeUndefined();
      call("fd_close", 77);
      expect(opened("a", { rights: READS })).toBe(77);
    });

    it("name the folders that were given", () => {
      expect(call("fd_prestat_get", 3, RESULT)).toBe(E.OK);
      expect([u32(RESULT), u32(RESULT + 4)]).toEqual([0, 6]);
      expect(call("fd_prestat_dir_name", 3, BUFFER, 5)).toBe(E.NAMETOOLONG);
      expect(call("fd_prestat_dir_name", 3, BUFFER, 6)).toBe(E.OK);
      expect(get(BUFFER, 6)).toBe("/given");
      expect(call("fd_prestat_get", opened("d", { rights: READS }), RESULT)).toBe(E.BADF);
    });

    it("give up rights, and gain none", () => {
      const fd = opened("a");
      expect(call("fd_fdstat_set_rights", fd, READS, 0n)).toBe(E.NOTCAPABLE);
      expect(call("fd_fdstat_set_rights", fd, RIGHT.read | RIGHT.tell, 0n)).toBe(E.OK);
      expect(call("fd_write", fd, ...vectors([BUFFER, 1]), RESULT)).toBe(E.NOTCAPABLE);
      expect(call("fd_seek", fd, 1n, 0, RESULT)).toBe(E.NOTCAPABLE);
      expect(call("fd_seek", fd, 0n, 1, RESULT)).toBe(E.OK);
      expect(call("fd_filestat_set_size", fd, 1n)).toBe(E.NOTCAPABLE);
      expect(call("fd_fdstat_set_rights", fd, RIGHT.write, 0n)).toBe(E.NOTCAPABLE);
      expect(call("fd_fdstat_set_rights", 3, FOLDER_RIGHTS & ~RIGHT.createFile, READS)).toBe(E.OK);
      expect(open("new", { how: OPEN.create, rights: READS })).toBe(E.NOTCAPABLE);
      expect(open("a", { rights: RIGHT.write })).toBe(E.NOTCAPABLE);
      expect(call("fd_fdstat_get", opened("a", { rights: READS | RIGHT.setSize }), RESULT)).toBe(E.OK);
      expect(u64(RESULT + 8)).toBe(RIGHT.read | RIGHT.seek | RIGHT.tell);
    });
  });

  describe("on files", () => {
    const read = (fd: number, count = 64): string => {
      expect(call("fd_read", fd, ...vectors([BUFFER, 1], [BUFFER + 1, count - 1]), RESULT)).toBe(E.OK);
      return get(BUFFER, u32(RESULT));
    };
    const write = (fd: number, text: string): void => {
      put(text, BUFFER);
      expect(call("fd_write", fd, ...vectors([BUFFER, text.length]), RESULT)).toBe(E.OK);
      expect(u32(RESULT)).toBe(text.length);
    };
    const textOf = (path: string): string => new TextDecoder().decode(folder.contents(path));

    it("read and write from place to place", () => {
      const fd = opened("a");
      expect([read(fd, 2), read(fd, 64), read(fd, 64)]).toEqual(["he", "llo", ""]);
      expect(call("fd_seek", fd, -4n, 2, RESULT)).toBe(E.OK);
      expect(u64(RESULT)).toBe(1n);
      write(fd, "XY");
      expect(call("fd_seek", fd, 1n, 1, RESULT)).toBe(E.OK);
      expect(call("fd_tell", fd, RESULT)).toBe(E.OK);
      expect([u64(RESULT), read(fd), textOf("a")]).toEqual([4n, "o", "hXYlo"]);
      expect(call("fd_seek", fd, -6n, 2, RESULT)).toBe(E.INVAL);
      expect(call("fd_seek", fd, 2n ** 60n, 0, RESULT)).toBe(E.INVAL);
      expect(call("fd_seek", fd, 0n, 3, RESULT)).toBe(E.INVAL);
      expect(call("fd_seek", fd, 100n, 0, RESULT)).toBe(E.OK);
      expect(read(fd)).toBe("");
    });

    it("read and write at a place, which does not move", () => {
      const fd = opened("a");
      put("__", BUFFER);
      expect(call("fd_pwrite", fd, ...vectors([BUFFER, 2]), 4n, RESULT)).toBe(E.OK);
      expect(call("fd_pread", fd, ...vectors([BUFFER, 9]), 3n, RESULT)).toBe(E.OK);
      expect([get(BUFFER, u32(RESULT)), read(fd)]).toEqual(["l__", "hell__"]);
      expect(call("fd_pread", fd, ...vectors([BUFFER, 9]), -1n, RESULT)).toBe(E.INVAL);
      expect(call("fd_pwrite", fd, ...vectors([BUFFER, 9]), -1n, RESULT)).toBe(E.INVAL);
    });

    it("append, by a flag that can be changed", () => {
      const [fd, other] = [opened("a", { flags: FLAG.append }), opened("a")];
      write(fd, "1");
      expect(call("fd_fdstat_set_flags", other, FLAG.append | FLAG.sync)).toBe(E.OK);
      write(other, "2");
      write(fd, "3");
      expect(call("fd_fdstat_set_flags", fd, 0)).toBe(E.OK);
      expect(call("fd_seek", fd, 0n, 0, RESULT)).toBe(E.OK);
      write(fd, "H");
      expect(textOf("a")).toBe("Hello123");
      expect(call("fd_fdstat_set_flags", fd, 32)).toBe(E.INVAL);
      expect(call("fd_fdstat_get", other, RESULT)).toBe(E.OK);
      expect([view().getUint8(RESULT), view().getUint16(RESULT + 2, true)]).toEqual([FILETYPE.file, 17]);
    });

    it("change their length: cut, lengthened, allocated", () => {
      const fd = opened("a");
      expect(call("fd_filestat_set_size", fd, 3n)).toBe(E.OK);
      expect(call("fd_allocate", fd, 0n, 2n)).toBe(E.OK);
      expect(textOf("a")).toBe("hel");
      expect(call("fd_allocate", fd, 2n, 3n)).toBe(E.OK);
      expect(textOf("a")).toBe("hel\0\0");
      expect(call("fd_allocate", fd, 0n, 0n)).toBe(E.INVAL);
      expect(call("fd_allocate", fd, -1n, 2n)).toBe(E.INVAL);
      expect(call("fd_filestat_set_size", fd, -1n)).toBe(E.INVAL);
      expect(call("fd_filestat_set_size", fd, 2n ** 50n)).toBe(E.FBIG);
    });

    it("take advice, and are synchronized", () => {
      const fd = opened("a");
      const calls = [
        call("fd_advise", fd, 0n, 9n, 5),
        call("fd_sync", fd),
        call("fd_datasync", fd),
        call("fd_sync", 3),
      ];
      expect(calls).toEqual([E.OK, E.OK, E.OK, E.OK]);
      expect(call("fd_advise", fd, 0n, 9n, 6)).toBe(E.INVAL);
    });

    it("have a status, and times: given ones, the present, or those before", () => {
      const fd = opened("a");
      expect(call("fd_filestat_set_times", fd, 5n, 7n, 1 | 4)).toBe(E.OK);
      expect(call("fd_filestat_get", fd, RESULT)).toBe(E.OK);
      const status = (at: number): bigint => u64(RESULT + at);
      expect([status(16), status(24), status(32), status(40), status(48)]).toEqual([4n, 1n, 5n, 5n, 7n]);
      expect(call("path_filestat_set_times", 3, 1, ...put("a"), 9n, 9n, 8)).toBe(E.OK);
      expect(call("path_filestat_get", 3, 1, ...put("a"), RESULT)).toBe(E.OK);
      expect([status(40), status(48)]).toEqual([5n, 1_700_000_001_000_000_000n]);
      expect(call("fd_filestat_set_times", fd, 0n, 0n, 1 | 2)).toBe(E.INVAL);
      expect(call("fd_filestat_set_times", fd, 0n, 0n, 16)).toBe(E.INVAL);
      expect(call("fd_filestat_set_times", 3, 3n, 4n, 5)).toBe(E.OK);
      expect(folder.status(".")).toMatchObject({ accessed: 3n, modified: 4n });
      expect(call("fd_filestat_set_times", 1, 3n, 4n, 5)).toBe(E.NOTCAPABLE);
    });
  });

  describe("on folders", () => {
    it("are no files", () => {
      for (const name of ["fd_read", "fd_write"]) expect(call(name, 3, ...vectors([BUFFER, 1]), RESULT)).toBe(E.ISDIR);
      expect(call("fd_pread", 3, ...vectors([BUFFER, 1]), 0n, RESULT)).toBe(E.ISDIR);
      expect(call("fd_seek", 3, 0n, 0, RESULT)).toBe(E.ISDIR);
      const fd = opened("a");
      expect(call("fd_readdir", fd, BUFFER, 100, 0n, RESULT)).toBe(E.NOTDIR);
      expect(open("a", { fd })).toBe(E.NOTDIR);
    });

    it("are listed piece by piece, by cookies, as they were at the first one", () => {
      const all = (count: number): string[] => {
        const found: string[] = [];
        for (let cookie = 0n; ; ) {
          expect(call("fd_readdir", 3, BUFFER, count, cookie, RESULT)).toBe(E.OK);
          const used = u32(RESULT);
          let at = 0;
          while (at + 24 <= used && at + 24 + u32(BUFFER + at + 16) <= used) {
            const length = u32(BUFFER + at + 16);
            found.push(`${get(BUFFER + at + 24, length)}:${view().getUint8(BUFFER + at + 20)}`);
            cookie = u64(BUFFER + at);
            at += 24 + length;
          }
          if (used < count) return found;
        }
      };
      expect(all(4096).sort()).toEqual(["..:3", ".:3", "a:4", "d:3"]);
      expect(all(27)).toEqual(all(4096));
      expect(call("fd_readdir", 3, BUFFER, 100, -1n, RESULT)).toBe(E.OK);
      expect(u32(RESULT)).toBe(0);
    });

    it("open what a path names, or say why not", () => {
      folder.createLink("l", "a");
      folder.createLink("dl", "d");
      folder.createLink("circle", "circle");
      folder.createLink("nowhere", "made");
      folder.createLink("slash", "a/");
      const cases: [path: string, options: Parameters<typeof open>[1], expected: number][] = [
        ["none", {}, E.NOENT],
        ["none/a", {}, E.NOENT],
        ["a/b", {}, E.NOTDIR],
        ["a/", {}, E.NOTDIR],
        ["", {}, E.NOENT],
        ["a\0", {}, E.INVAL],
        ["x".repeat(256), {}, E.NAMETOOLONG],
        ["ü".repeat(128), {}, E.NAMETOOLONG],
        ["ü".repeat(127), {}, E.NOENT],
        ["l", { look: 0 }, E.LOOP],
        ["l", {}, E.OK],
        ["l/", {}, E.NOTDIR],
        ["slash", {}, E.NOTDIR],
        ["circle", {}, E.LOOP],
        ["d", {}, E.ISDIR],
        ["d", { rights: READS }, E.OK],
        ["dl/inner", { look: 0 }, E.OK],
        ["dl/", { look: 0, rights: READS }, E.OK],
        ["d/../d/./inner", {}, E.OK],
        [".", { rights: READS }, E.OK],
        ["a", { how: OPEN.folder, rights: READS }, E.NOTDIR],
        ["a", { how: OPEN.create | OPEN.exclusive }, E.EXIST],
        ["d", { how: OPEN.create | OPEN.exclusive }, E.EXIST],
        ["l", { how: OPEN.create | OPEN.exclusive }, E.EXIST],
        ["nowhere", { how: OPEN.create | OPEN.exclusive }, E.EXIST],
        ["nowhere", { how: OPEN.create }, E.OK],
        ["d", { how: OPEN.create, rights: READS }, E.ISDIR],
        ["d", { how: OPEN.truncate, rights: READS }, E.ISDIR],
        ["new/", { how: OPEN.create }, E.ISDIR],
        ["new/x", { how: OPEN.create }, E.NOENT],
        ["none", { how: OPEN.folder }, E.NOENT],
        ["a", { how: 16 }, E.INVAL],
        ["a", { flags: 32 }, E.INVAL],
        ["a", { look: 2 }, E.INVAL],
      ];
      expect(cases.map(([path, options]) => [path, options, open(path, options)])).toEqual(cases);
      expect(folder.contents("made")?.length).toBe(0);
      new Uint8Array(memory.buffer).set([0xff, 0xfe], TEXT);
      expect(call("path_open", 3, 0, TEXT, 2, 0, 0n, 0n, 0, RESULT)).toBe(E.ILSEQ);
    });

    it("make and remove names, or say why not", () => {
      const second = (text: string): [number, number] => put(text, OTHER);
      const calls: [what: string, errno: number, expected: number][] = [
        ["mkdir", call("path_create_directory", 3, ...put("e/")), E.OK],
        ["mkdir again", call("path_create_directory", 3, ...put("e")), E.EXIST],
        ["mkdir .", call("path_create_directory", 3, ...put(".")), E.EXIST],
        ["mkdir below none", call("path_create_directory", 3, ...put("none/e")), E.NOENT],
        ["rmdir .", call("path_remove_directory", 3, ...put(".")), E.INVAL],
        ["rmdir none", call("path_remove_directory", 3, ...put("none")), E.NOENT],
        ["rmdir a", call("path_remove_directory", 3, ...put("a")), E.NOTDIR],
        ["rmdir d", call("path_remove_directory", 3, ...put("d")), E.NOTEMPTY],
        ["rmdir e", call("path_remove_directory", 3, ...put("e")), E.OK],
        ["unlink .", call("path_unlink_file", 3, ...put(".")), E.ISDIR],
        ["unlink d", call("path_unlink_file", 3, ...put("d")), E.ISDIR],
        ["unlink a/", call("path_unlink_file", 3, ...put("a/")), E.NOTDIR],
        ["unlink none", call("path_unlink_file", 3, ...put("none")), E.NOENT],
        ["symlink", call("path_symlink", ...put("a"), 3, ...second("l")), E.OK],
        ["symlink again", call("path_symlink", ...put("a"), 3, ...second("l")), E.EXIST],
        ["symlink to nothing", call("path_symlink", ...put(""), 3, ...second("m")), E.NOENT],
        ["symlink l/", call("path_symlink", ...put("a"), 3, ...second("m/")), E.NOENT],
        ["readlink a", call("path_readlink", 3, ...put("a"), BUFFER, 9, RESULT), E.INVAL],
        ["readlink none", call("path_readlink", 3, ...put("none"), BUFFER, 9, RESULT), E.NOENT],
        ["link", call("path_link", 3, 0, ...put("a"), 3, ...second("h")), E.OK],
        ["link again", call("path_link", 3, 0, ...put("a"), 3, ...second("h")), E.EXIST],
        ["link d", call("path_link", 3, 0, ...put("d"), 3, ...second("i")), E.PERM],
        ["link by a link", call("path_link", 3, 0, ...put("l"), 3, ...second("i")), E.NOTSUP],
        ["link what a link names", call("path_link", 3, 1, ...put("l"), 3, ...second("i")), E.OK],
        ["link none", call("path_link", 3, 0, ...put("none"), 3, ...second("j")), E.NOENT],
        ["rename none", call("path_rename", 3, ...put("none"), 3, ...second("j")), E.NOENT],
        ["rename .", call("path_rename", 3, ...put("."), 3, ...second("j")), E.BUSY],
        ["rename to .", call("path_rename", 3, ...put("a"), 3, ...second(".")), E.BUSY],
        ["rename a j/", call("path_rename", 3, ...put("a"), 3, ...second("j/")), E.NOTDIR],
        ["rename d", call("path_rename", 3, ...put("d"), 3, ...second("j/")), E.OK],
        ["stat none", call("path_filestat_get", 3, 0, ...put("none"), RESULT), E.NOENT],
        ["times of none", call("path_filestat_set_times", 3, 0, ...put("none"), 0n, 0n, 2), E.NOENT],
      ];
      expect(calls.map(([what, errno]) => [what, errno])).toEqual(calls.map(([what, , expected]) => [what, expected]));
      const names = folder.entries().map(({ name }) => name);
      expect(names.sort()).toEqual(["a", "h", "i", "j", "l"]);
    });

    it("read as much of a link as there is room for", () => {
      folder.createLink("l", "target");
      expect(call("path_readlink", 3, ...put("l"), BUFFER, 3, RESULT)).toBe(E.OK);
      expect([u32(RESULT), get(BUFFER, 4)]).toEqual([3, "tar\0"]);
    });

    it("stay open when another folder takes their place", () => {
      const fd = opened("d", { rights: READS | RIGHT.open });
      expect(call("path_rename", 3, ...put("d"), 3, ...put("e", OTHER))).toBe(E.OK);
      expect(opened("inner", { fd, rights: RIGHT.read })).toBe(fd + 1);
    });
  });

  describe("poll_oneoff()", () => {
    const subscribe = (i: number, kind: number, fill: (at: number) => void): void => {
      const at = BUFFER + i * 48;
      new Uint8Array(memory.buffer).fill(0, at, at + 48);
      view().setBigUint64(at, BigInt(100 + i), true);
      view().setUint8(at + 8, kind);
      fill(at);
    };
    const clock = (i: number, id: number, timeout: bigint, isAbsolute = false): void =>
      subscribe(i, 0, (at) => {
        view().setUint32(at + 16, id, true);
        view().setBigUint64(at + 24, timeout, true);
        view().setUint16(at + 40, isAbsolute ? 1 : 0, true);
      });
    const fd = (i: number, kind: number, number: number): void =>
      subscribe(i, kind, (at) => view().setUint32(at + 16, number, true));
    /** [userdata, errno, kind, bytes] of each event. */
    const poll = (count: number): [number, number, number, number][] => {
      expect(call("poll_oneoff", BUFFER, OTHER, count, RESULT)).toBe(E.OK);
      return Array.from({ length: u32(RESULT) }, (_, i) => {
        const at = OTHER + i * 32;
        const [errno, kind] = [view().getUint16(at + 8, true), view().getUint8(at + 10)];
        return [Number(u64(at)), errno, kind, Number(u64(at + 16))];
      });
    };

    it("sleeps until the first clock is due, by any clock, absolute or not", () => {
      clock(0, 1, 5_000_000n);
      clock(1, 0, 3_000_000n);
      expect(poll(2)).toEqual([[101, 0, 0, 0]]);
      expect(time).toBeCloseTo(1003, 5);
      clock(0, 1, 1_004_000_000n, true);
      clock(1, 0, 1_700_000_001_004_000_000n, true);
      expect(poll(2)).toHaveLength(2);
      expect(time).toBeCloseTo(1004, 5);
      clock(0, 1, 1n, true);
      expect(poll(1)).toEqual([[100, 0, 0, 0]]);
      expect(time).toBeCloseTo(1004, 5);
    });

    it("sleeps again where a sleep was too short", () => {
      start({
        sleep: (milliseconds) => {
          time += milliseconds / 2 + 0.1;
        },
      });
      clock(0, 1, 10_000_000n);
      expect(poll(1)).toHaveLength(1);
      expect(time).toBeGreaterThanOrEqual(1010);
    });

    it("finds all descriptors ready, and says which are none", () => {
      const file = opened("a", { rights: READS | RIGHT.poll });
      fd(0, 1, file);
      fd(1, 2, 1);
      fd(2, 1, 77);
      clock(3, 1, 5_000_000n);
      clock(4, 9, 0n);
      expect(poll(5)).toEqual([
        [100, 0, 1, 5],
        [101, 0, 2, 1],
        [102, E.BADF, 1, 0],
        [104, E.INVAL, 0, 0],
      ]);
      expect(time).toBe(1000);
    });

    it("refuses nothing to wait for, too much, and unknown kinds", () => {
      expect(call("poll_oneoff", BUFFER, OTHER, 0, RESULT)).toBe(E.INVAL);
      expect(call("poll_oneoff", BUFFER, OTHER, -1, RESULT)).toBe(E.INVAL);
      fd(0, 3, 1);
      expect(call("poll_oneoff", BUFFER, OTHER, 1, RESULT)).toBe(E.INVAL);
    });
  });
});
