// New folders of this user, for programs that are run then: in a module of its own, since pages do not load it.
import { nodeModule } from "../host.js";
import { whyNotPrivate } from "./private-folder.js";

/**
 * Makes a new folder for this user alone, in that of temporary files (TMPDIR).
 * @throws Error it can't be made, or other users may replace it there
 */
export function makeTemporaryFolder(prefix: string): string {
  const { mkdtempSync, rmSync } = nodeModule("fs") as typeof import("node:fs");
  const { tmpdir } = nodeModule("os") as typeof import("node:os");
  const folder = mkdtempSync(`${tmpdir()}/${prefix}-`);
  const why = whyNotPrivate(folder);
  if (why === undefined) return folder;
  rmSync(folder, { recursive: true, force: true });
  throw new Error(why);
}
