// The memory that the processes of a host share: which processes may open it, and when it has its pages.
import { spawnSync } from "node:child_process";
import { closeSync, fstatSync, readdirSync, statSync } from "node:fs";
import { isBuiltin } from "node:module";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { type Ffi, NODE_FFI, openFfi } from "../../src/process/ffi.js";
import { futexOf } from "../../src/process/futex.js";
import { mapMemory } from "../../src/process/mapping.js";
import { binaryOf, findFfi } from "../../src/process/process-memory.js";

const isLinux = process.platform === "linux";
/** Koffi, what a process gets that another one has started: koffi's binary alone, and node:ffi. */
const ways = isLinux ? [findFfi(), binaryOf(findFfi()), ...(isBuiltin(NODE_FFI) ? [NODE_FFI] : [])] : [];
const NOBODY = 65_534;
const MIB = 2 ** 20;
/** Unit of st_blocks. */
const BLOCK_BYTES = 512;

it.runIf(isLinux && findFfi() !== NODE_FFI)("other processes get the path of koffi's binary", () => {
  expect(binaryOf(findFfi())).toMatch(/\.node$/);
});

describe.each(ways)("a memory by %s", (way) => {
  it("has mode 0600, and no other user can open it, also one that has inherited its descriptor", () => {
    const descriptor = openFfi(way).makeMemory(65_536);
    try {
      expect(statSync(`/proc/self/fd/${descriptor}`).mode & 0o7777).toBe(0o600);
      const opens = (path: string, uid: number | undefined): boolean => {
        const stdio = ["ignore", "ignore", "ignore", descriptor] as const;
        return spawnSync("/bin/sh", ["-c", `exec 4<>${path}`], { uid, stdio: [...stdio], cwd: "/" }).status === 0;
      };
      expect(opens("/proc/self/fd/3", undefined)).toBe(true);
      // Only root can become another user.
      if (process.getuid?.() !== 0) return;
      expect(opens("/proc/self/fd/3", NOBODY)).toBe(false);
      expect(opens(`/proc/${process.pid}/fd/${descriptor}`, NOBODY)).toBe(false);
    } finally {
      closeSync(descriptor);
    }
  });

  it.each([
    ["by their address", true],
    ["by a descriptor, as before Linux 5.14", false],
  ])("pages are there once they are reserved, %s, and keep what they hold", (_, isKnown) => {
    const real = openFfi(way);
    const ffi: Ffi = isKnown ? real : { ...real, canPopulate: () => false };
    const descriptor = ffi.makeMemory(4 * MIB);
    try {
      const { shared, futex } = mapMemory(ffi, 4 * MIB, descriptor);
      // Linux 5.14 and later know both ways.
      if (isKnown) expect(real.canPopulate(futex.address)).toBe(futex.descriptor === undefined);
      else expect(fstatSync(futex.descriptor as number).ino).toBe(fstatSync(descriptor).ino);
      const bytes = new Uint8Array(shared.buffer);
      bytes.fill(7, MIB, MIB + 10);
      const allocated = () => fstatSync(descriptor).blocks * BLOCK_BYTES;
      expect(allocated()).toBe(4096);
      const { reserve } = futexOf(futex, shared);
      expect(reserve(MIB - 8192, MIB)).toBe(true);
      expect(allocated()).toBe(MIB);
      expect([...bytes.subarray(MIB - 1, MIB + 11)]).toEqual([0, ...new Array(10).fill(7), 0]);
      // Beyond the end of the memory, which can't grow.
      expect(reserve(4 * MIB - 4096, 8192)).toBe(false);
    } finally {
      closeSync(descriptor);
    }
  });

  it("the descriptor for that is closed once the memory is not used any more", async () => {
    const real = openFfi(way);
    const inodes = () =>
      readdirSync("/proc/self/fd").map((fd) => statSync(`/proc/self/fd/${fd}`, { throwIfNoEntry: false })?.ino);
    const held = (() => {
      const descriptor = real.makeMemory(65_536);
      mapMemory({ ...real, canPopulate: () => false }, 65_536, descriptor);
      const { ino } = fstatSync(descriptor);
      closeSync(descriptor);
      return ino;
    })();
    expect(inodes()).toContain(held);
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    await expect
      .poll(
        () => {
          gc();
          return inodes().includes(held);
        },
        { timeout: 60_000 },
      )
      .toBe(false);
  });

  it("an address that is no multiple of a page of the system is one that can't be populated", () => {
    const ffi = openFfi(way);
    const descriptor = ffi.makeMemory(65_536);
    const { futex } = mapMemory(ffi, 65_536, descriptor);
    closeSync(descriptor);
    expect(ffi.canPopulate(futex.address + 2048)).toBe(false);
  });
});
