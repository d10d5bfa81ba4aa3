// The memory that the processes of a host share: which processes may open it.
import { spawnSync } from "node:child_process";
import { closeSync, statSync } from "node:fs";
import { isBuiltin } from "node:module";
import { describe, expect, it } from "vitest";
import { NODE_FFI, openFfi } from "../../src/process/ffi.js";
import { findFfi } from "../../src/process/process-memory.js";

const isLinux = process.platform === "linux";
const ways = isLinux ? [findFfi(), ...(isBuiltin(NODE_FFI) ? [NODE_FFI] : [])] : [];
const NOBODY = 65_534;

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
});
