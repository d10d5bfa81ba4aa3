// The files of the tests, without the folders beside them that a running test makes and removes.
import { readdirSync } from "node:fs";

/** Paths below a folder, with "/". Folders that begin with a dot are left out: one may be gone before its files are listed. */
export function pathsIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name.startsWith(".")) return [];
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? pathsIn(path) : [path];
  });
}
