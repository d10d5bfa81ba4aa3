// Walks a path from a folder, component by component, and never out of it: no absolute path, no ".." above the folder, no
// symbolic link that leads out. Each link is read and walked here; neither a host nor a Folder follows one.
import type { FileStatus, Folder } from "./files.js";
import { FILETYPE, fail } from "./numbers.js";

/** As Linux: more links in one path are taken for a circle. */
const LINKS_MAX = 40;
/** As most file systems. */
const NAME_BYTES_MAX = 255;

/** Where a path leads: a name in a folder. Nothing may have the name; "." is the folder itself. */
export interface PathEnd {
  readonly folder: Folder;
  readonly name: string;
  /** What has the name, links not followed. */
  readonly status: FileStatus | undefined;
  /** The path ends with a slash, or "." or "..": only a folder may have the name. */
  readonly isFolderPath: boolean;
}

/** @param follows whether the last component may be a link that is followed */
export function walk(from: Folder, path: string, follows: boolean): PathEnd {
  const way = [from];
  let links = 0;
  let { names, isFolderPath } = split(path);
  while (true) {
    const name = names.pop();
    const folder = way.at(-1) as Folder;
    if (name === undefined) return { folder, name: ".", status: folder.status("."), isFolderPath: true };
    if (name === "..") {
      if (way.length === 1) fail("NOTCAPABLE");
      way.pop();
      continue;
    }
    const isLast = names.length === 0;
    const status = folder.status(name);
    if (status?.type === FILETYPE.link && (!isLast || follows || isFolderPath)) {
      if (++links > LINKS_MAX) fail("LOOP");
      const target = split(folder.readLink(name));
      names = [...names, ...target.names];
      if (isLast) isFolderPath ||= target.isFolderPath;
    } else if (isLast) {
      if (isFolderPath && status !== undefined && status.type !== FILETYPE.folder) fail("NOTDIR");
      return { folder, name, status, isFolderPath };
    } else if (status === undefined) fail("NOENT");
    else way.push(folder.folder(name));
  }
}

/** The components of a path, the first one last. */
function split(path: string): { names: string[]; isFolderPath: boolean } {
  if (path === "") fail("NOENT");
  if (path.startsWith("/")) fail("NOTCAPABLE");
  if (path.includes("\0")) fail("INVAL");
  const all = path.split("/");
  const isFolderPath = ["", ".", ".."].includes(all.at(-1) as string);
  const names = all.filter((name) => name !== "" && name !== ".").reverse();
  // A unit of UTF-16 takes at most three bytes of UTF-8: only longer names are counted.
  const isLong = (name: string): boolean =>
    name.length * 3 > NAME_BYTES_MAX && new TextEncoder().encode(name).length > NAME_BYTES_MAX;
  if (names.some(isLong)) fail("NAMETOOLONG");
  return { names, isFolderPath };
}
