// The C programs of bench/peers, compiled when they are first wanted, and kept in the user's cache. What is run is what was
// compiled: no other user can write to the folder, or put another one there.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, lstatSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { makePrivateFolder } from "../../src/support/node/private-folder.js";
import { makeTemporaryFolder } from "../../src/support/node/temporary-folder.js";

const FLAGS = ["-O3", "-march=native", "-pthread"];

/** The folder of this process, where the user has no cache that is theirs alone. */
let ownFolder: string | undefined;

/** The cache of this user, or else a folder that goes with this process. @throws Error others may replace that, too */
function cacheFolder(): string {
  const { XDG_CACHE_HOME } = process.env;
  try {
    const caches =
      XDG_CACHE_HOME !== undefined && isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), ".cache");
    const folder = join(caches, "pamir");
    makePrivateFolder(folder);
    return folder;
  } catch {
    // No home, or one in which others may write.
    if (ownFolder !== undefined) return ownFolder;
    const folder = makeTemporaryFolder("pamir-peers");
    process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
    ownFolder = folder;
    return folder;
  }
}

/** Whether a file is a program that this user has made, and that no other user can change. */
function isOwnProgram(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() !== true) return false;
  const user = process.geteuid?.();
  return user === undefined || (stats.uid === user && (stats.mode & 0o022) === 0 && (stats.mode & 0o100) !== 0);
}

/**
 * Compiles a program, unless that has been done; its path.
 * @param compiler an absolute path
 * @param sources folder of NAME.c and common.h
 * @throws Error the compiler fails
 */
export function compile(compiler: string, sources: string, name: string): string {
  const hash = createHash("sha256").update([compiler, ...FLAGS].join(" "));
  for (const file of [`${name}.c`, "common.h"]) hash.update(readFileSync(join(sources, file)));
  const folder = cacheFolder();
  const program = join(folder, `${name}-${hash.digest("hex").slice(0, 32)}`);
  if (isOwnProgram(program)) return program;
  // Made elsewhere first: two runs may do this at the same time, and a compiler writes through a link.
  const fresh = mkdtempSync(join(folder, "compiles-"));
  try {
    const made = join(fresh, name);
    execFileSync(compiler, [...FLAGS, join(sources, `${name}.c`), "-o", made], { stdio: ["ignore", "pipe", "pipe"] });
    chmodSync(made, 0o700);
    rmSync(program, { recursive: true, force: true });
    renameSync(made, program);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  if (!isOwnProgram(program)) throw new Error(`${program} is not what was compiled`);
  return program;
}
