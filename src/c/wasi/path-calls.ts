// What programs do with paths. Each path is walked from a folder that the program has open.
import { encodeText } from "../../support/text.js";
import type { FolderDescriptor } from "./descriptors.js";
import { timesOf, writeStatus } from "./fd-calls.js";
import type { WasiCall, WasiState } from "./host.js";
import {
  FILE_RIGHTS,
  FILETYPE,
  FLAGS_ALL,
  FOLDER_RIGHTS,
  FOLLOW,
  fail,
  INHERITED_RIGHTS,
  OPEN,
  OPEN_ALL,
  RIGHT,
} from "./numbers.js";
import { type PathEnd, walk } from "./paths.js";

const WRITES = RIGHT.write | RIGHT.allocate | RIGHT.setSize;

/** The folder of a descriptor, and where a path leads from there. @throws EINVAL unknown flags of a walk */
function lead(
  state: WasiState,
  fd: number,
  right: bigint,
  [pointer, count]: readonly [number, number],
  look = 0,
): PathEnd {
  if ((look & ~FOLLOW) !== 0) fail("INVAL");
  const { folder } = state.descriptors.folder(fd, right);
  return walk(folder, state.memory.text(pointer, count), (look & FOLLOW) !== 0);
}

export function pathCalls(state: WasiState): Record<string, WasiCall> {
  return { ...openCalls(state), ...statusCalls(state), ...nameCalls(state), ...linkCalls(state) };
}

function statusCalls(state: WasiState): Record<string, WasiCall> {
  const { memory } = state;
  return {
    path_filestat_get(fd: number, look: number, path: number, count: number, result: number) {
      const { status } = lead(state, fd, RIGHT.pathStatus, [path, count], look);
      writeStatus(memory, result, status ?? fail("NOENT"));
    },
    path_filestat_set_times(...[fd, look, path, count, accessed, modified, flags]: SetTimes) {
      const { folder, name, status } = lead(state, fd, RIGHT.pathSetTimes, [path, count], look);
      folder.setTimes(name, ...timesOf(state, status ?? fail("NOENT"), [accessed, modified], flags));
    },
  };
}

type SetTimes = [
  fd: number,
  look: number,
  path: number,
  count: number,
  accessed: bigint,
  modified: bigint,
  flags: number,
];

function nameCalls(state: WasiState): Record<string, WasiCall> {
  return {
    path_create_directory(fd: number, path: number, count: number) {
      const { folder, name, status } = lead(state, fd, RIGHT.createFolder, [path, count]);
      if (status !== undefined) fail("EXIST");
      folder.createFolder(name);
    },
    path_remove_directory(fd: number, path: number, count: number) {
      const { folder, name, status } = lead(state, fd, RIGHT.removeFolder, [path, count]);
      if (status === undefined) fail("NOENT");
      if (name === ".") fail("INVAL");
      folder.removeFolder(name);
    },
    path_unlink_file(fd: number, path: number, count: number) {
      const { folder, name, status } = lead(state, fd, RIGHT.removeFile, [path, count]);
      if (status === undefined) fail("NOENT");
      folder.removeFile(name);
    },
    path_rename(...[fd, path, count, toFd, toPath, toCount]: Rename) {
      const from = lead(state, fd, RIGHT.renameSource, [path, count]);
      const to = lead(state, toFd, RIGHT.renameTarget, [toPath, toCount]);
      if (from.status === undefined) fail("NOENT");
      if (from.name === "." || to.name === ".") fail("BUSY");
      if (to.isFolderPath && from.status.type !== FILETYPE.folder) fail("NOTDIR");
      from.folder.rename(from.name, to.folder, to.name);
    },
  };
}

type Rename = [fd: number, path: number, count: number, toFd: number, toPath: number, toCount: number];

function linkCalls(state: WasiState): Record<string, WasiCall> {
  const { memory } = state;
  return {
    path_link(...[fd, look, path, count, toFd, toPath, toCount]: Link) {
      const from = lead(state, fd, RIGHT.linkSource, [path, count], look);
      const to = lead(state, toFd, RIGHT.linkTarget, [toPath, toCount]);
      if (from.status === undefined) fail("NOENT");
      if (to.status !== undefined) fail("EXIST");
      if (to.isFolderPath) fail("NOENT");
      from.folder.link(from.name, to.folder, to.name);
    },
    path_symlink(target: number, targetCount: number, fd: number, path: number, count: number) {
      const { folder, name, status, isFolderPath } = lead(state, fd, RIGHT.symbolicLink, [path, count]);
      const text = memory.text(target, targetCount);
      if (text === "") fail("NOENT");
      if (text.includes("\0")) fail("INVAL");
      // The program itself could not follow the link, but others of the host would.
      if (text.startsWith("/")) fail("NOTCAPABLE");
      if (status !== undefined) fail("EXIST");
      if (isFolderPath) fail("NOENT");
      folder.createLink(name, text);
    },
    path_readlink(...[fd, path, count, buffer, room, result]: ReadLink) {
      memory.need(result, 4);
      const { folder, name, status } = lead(state, fd, RIGHT.readLink, [path, count]);
      if (status === undefined) fail("NOENT");
      if (status.type !== FILETYPE.link) fail("INVAL");
      const target = encodeText(folder.readLink(name)).subarray(0, room >>> 0);
      memory.put(buffer, target);
      memory.setU32(result, target.length);
    },
  };
}

type Link = [fd: number, look: number, path: number, count: number, toFd: number, toPath: number, toCount: number];
type ReadLink = [fd: number, path: number, count: number, buffer: number, room: number, result: number];

/** What path_open() is given beside the path. */
interface Opening {
  /** Bits of OPEN. */
  readonly how: number;
  readonly rights: bigint;
  readonly inherited: bigint;
  /** Bits of FLAG. */
  readonly flags: number;
}

function openCalls(state: WasiState): Record<string, WasiCall> {
  const { memory, descriptors } = state;
  return {
    path_open(...[fd, look, path, count, how, rights, inherited, flags, result]: Open) {
      memory.need(result, 4);
      if ((how & ~OPEN_ALL) !== 0 || (flags & ~FLAGS_ALL) !== 0) fail("INVAL");
      const parent = descriptors.folder(fd, openRights(how));
      descriptors.needOne();
      // With O_EXCL, a link that leads nowhere is there.
      const isExclusive = (how & OPEN.create) !== 0 && (how & OPEN.exclusive) !== 0;
      const end = lead(state, fd, RIGHT.open, [path, count], isExclusive ? look & ~FOLLOW : look);
      memory.setU32(result, openAt(state, parent, end, { how, rights, inherited, flags }));
    },
  };
}

type Open = [
  fd: number,
  look: number,
  path: number,
  count: number,
  how: number,
  rights: bigint,
  inherited: bigint,
  flags: number,
  result: number,
];

function openRights(how: number): bigint {
  const creates = (how & OPEN.create) !== 0 ? RIGHT.createFile : 0n;
  return RIGHT.open | creates | ((how & OPEN.truncate) !== 0 ? RIGHT.pathSetSize : 0n);
}

function openAt(state: WasiState, parent: FolderDescriptor, end: PathEnd, opening: Opening): number {
  const { how, flags } = opening;
  const { folder, name, status } = end;
  const has = (flag: number): boolean => (how & flag) !== 0;
  // Bits without a meaning are no rights, and rights of another kind of file are dropped. To read and write must be allowed.
  const asked = BigInt.asUintN(64, opening.rights) & INHERITED_RIGHTS;
  if ((asked & (RIGHT.read | RIGHT.write) & ~parent.inherited) !== 0n) fail("NOTCAPABLE");
  const rights = asked & parent.inherited;
  const inherited = opening.inherited & parent.inherited;
  if (status?.type === FILETYPE.folder && !(has(OPEN.create) && has(OPEN.exclusive))) {
    if ((rights & RIGHT.write) !== 0n || has(OPEN.truncate) || (has(OPEN.create) && !has(OPEN.folder))) fail("ISDIR");
    const opened = name === "." ? folder : folder.folder(name);
    const own = { rights: rights & FOLDER_RIGHTS, inherited, flags };
    return state.descriptors.add({ kind: "folder", folder: opened, preopened: undefined, entries: [], ...own });
  }
  if (has(OPEN.folder)) fail(status === undefined ? "NOENT" : "NOTDIR");
  if (end.isFolderPath) fail(status === undefined ? (has(OPEN.create) ? "ISDIR" : "NOENT") : "NOTDIR");
  const file = folder.open(name, {
    reads: (rights & RIGHT.read) !== 0n,
    writes: (rights & WRITES) !== 0n,
    creates: has(OPEN.create),
    exclusive: has(OPEN.exclusive),
    truncates: has(OPEN.truncate),
  });
  return state.descriptors.add({ kind: "file", file, position: 0, rights: rights & FILE_RIGHTS, inherited, flags });
}
