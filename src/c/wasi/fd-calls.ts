// What a descriptor is: its state, its status, its entries, and its end.
import { encodeText } from "../../support/text.js";
import type { Descriptor, FolderDescriptor } from "./descriptors.js";
import type { FileStatus } from "./files.js";
import type { WasiCall, WasiState } from "./host.js";
import { placeOf } from "./io-calls.js";
import { FILETYPE, FLAGS_ALL, fail, nanoseconds, RIGHT, TIMES, TIMES_ALL } from "./numbers.js";
import type { ProgramMemory } from "./program-memory.js";

/** Offsets in `__wasi_fdstat_t`, `__wasi_filestat_t` and `__wasi_dirent_t`, and their bytes. */
const FDSTAT = { flags: 2, rights: 8, inherited: 16, bytes: 24 } as const;
const FILESTAT = {
  inode: 8,
  type: 16,
  links: 24,
  size: 32,
  accessed: 40,
  modified: 48,
  changed: 56,
  bytes: 64,
} as const;
const ENTRY = { inode: 8, name: 16, type: 20, bytes: 24 } as const;
const ADVICE_MAX = 5;

export function fdCalls(state: WasiState): Record<string, WasiCall> {
  return { ...stateCalls(state), ...fileCalls(state), ...folderCalls(state) };
}

function stateCalls({ memory, descriptors }: WasiState): Record<string, WasiCall> {
  return {
    fd_close: (fd: number) => descriptors.close(fd),
    fd_renumber: (from: number, to: number) => descriptors.renumber(from, to),
    fd_fdstat_get(fd: number, result: number) {
      const found = descriptors.get(fd);
      memory.put(result, new Uint8Array(FDSTAT.bytes));
      memory.setU8(result, typeOf(found));
      memory.setU16(result + FDSTAT.flags, found.flags);
      memory.setU64(result + FDSTAT.rights, found.rights);
      memory.setU64(result + FDSTAT.inherited, found.inherited);
    },
    fd_fdstat_set_flags(fd: number, flags: number) {
      if ((flags & ~FLAGS_ALL) !== 0) fail("INVAL");
      descriptors.get(fd, RIGHT.setFlags).flags = flags;
    },
    fd_fdstat_set_rights(fd: number, rights: bigint, inherited: bigint) {
      const found = descriptors.get(fd);
      // Rights can be given up, never gained.
      if ((rights & ~found.rights) !== 0n || (inherited & ~found.inherited) !== 0n) fail("NOTCAPABLE");
      found.rights = rights;
      found.inherited = inherited;
    },
  };
}

function typeOf(found: Descriptor): number {
  if (found.kind === "stream") return FILETYPE.characterDevice;
  return found.kind === "folder" ? FILETYPE.folder : found.file.status().type;
}

function fileCalls(state: WasiState): Record<string, WasiCall> {
  const { memory, descriptors } = state;
  const sync = (fd: number, right: bigint): void => {
    const found = descriptors.get(fd, right);
    if (found.kind === "stream") fail("INVAL");
    // A folder's entries are written by its host.
    if (found.kind === "file") found.file.sync(right === RIGHT.datasync);
  };
  return {
    fd_advise(fd: number, offset: bigint, count: bigint, advice: number) {
      descriptors.file(fd, RIGHT.advise);
      if (advice >>> 0 > ADVICE_MAX || offset < 0n || count < 0n) fail("INVAL");
    },
    fd_allocate(fd: number, offset: bigint, count: bigint) {
      const { file } = descriptors.file(fd, RIGHT.allocate);
      if (offset < 0n || count <= 0n) fail("INVAL");
      const size = placeOf(offset + count);
      if (file.status().size < size) file.setSize(size);
    },
    fd_sync: (fd: number) => sync(fd, RIGHT.sync),
    fd_datasync: (fd: number) => sync(fd, RIGHT.datasync),
    fd_filestat_get(fd: number, result: number) {
      const found = descriptors.get(fd, RIGHT.status);
      if (found.kind === "file") writeStatus(memory, result, found.file.status());
      else if (found.kind === "folder") writeStatus(memory, result, found.folder.status(".") ?? fail("NOENT"));
      else {
        memory.put(result, new Uint8Array(FILESTAT.bytes));
        memory.setU8(result + FILESTAT.type, FILETYPE.characterDevice);
      }
    },
    fd_filestat_set_size(fd: number, size: bigint) {
      const { file } = descriptors.file(fd, RIGHT.setSize);
      file.setSize(placeOf(size));
    },
    fd_filestat_set_times(fd: number, accessed: bigint, modified: bigint, flags: number) {
      const found = descriptors.get(fd, RIGHT.setTimes);
      if (found.kind === "stream") return fail("INVAL");
      const old = found.kind === "file" ? found.file.status() : (found.folder.status(".") ?? fail("NOENT"));
      const times = timesOf(state, old, [accessed, modified], flags);
      if (found.kind === "file") found.file.setTimes(...times);
      else found.folder.setTimes(".", ...times);
    },
  };
}

/** The times that a call sets: given ones, the present, or those that were. */
export function timesOf(
  { host }: WasiState,
  old: FileStatus,
  [accessed, modified]: readonly [bigint, bigint],
  flags: number,
): [accessed: bigint, modified: bigint] {
  const has = (flag: number): boolean => (flags & flag) !== 0;
  const isDouble = (has(TIMES.accessed) && has(TIMES.accessedNow)) || (has(TIMES.modified) && has(TIMES.modifiedNow));
  if ((flags & ~TIMES_ALL) !== 0 || isDouble) fail("INVAL");
  const now = nanoseconds(host.wallTime());
  const one = (isGiven: boolean, given: bigint, isNow: boolean, before: bigint): bigint =>
    isGiven ? BigInt.asUintN(64, given) : isNow ? now : before;
  return [
    one(has(TIMES.accessed), accessed, has(TIMES.accessedNow), old.accessed),
    one(has(TIMES.modified), modified, has(TIMES.modifiedNow), old.modified),
  ];
}

export function writeStatus(memory: ProgramMemory, to: number, status: FileStatus): void {
  memory.need(to, FILESTAT.bytes);
  memory.setU64(to, status.device);
  memory.setU64(to + FILESTAT.inode, status.inode);
  memory.setU64(to + FILESTAT.type, BigInt(status.type));
  memory.setU64(to + FILESTAT.links, status.links);
  memory.setU64(to + FILESTAT.size, status.size);
  memory.setU64(to + FILESTAT.accessed, status.accessed);
  memory.setU64(to + FILESTAT.modified, status.modified);
  memory.setU64(to + FILESTAT.changed, status.changed);
}

function folderCalls({ memory, descriptors }: WasiState): Record<string, WasiCall> {
  /** What a program calls a folder that it was given. Libraries ask for one descriptor after the other, until EBADF. */
  const nameOf = (fd: number): Uint8Array => {
    const found = descriptors.get(fd);
    return found.kind === "folder" && found.preopened !== undefined ? encodeText(found.preopened) : fail("BADF");
  };
  return {
    fd_prestat_get(fd: number, result: number) {
      const { length } = nameOf(fd);
      // The kind 0 is a folder.
      memory.setU32(result, 0);
      memory.setU32(result + 4, length);
    },
    fd_prestat_dir_name(fd: number, name: number, count: number) {
      const known = nameOf(fd);
      if (known.length > count >>> 0) fail("NAMETOOLONG");
      memory.put(name, known);
    },
    fd_readdir(fd: number, buffer: number, count: number, cookie: bigint, result: number) {
      memory.need(result, 4);
      const found = descriptors.folder(fd, RIGHT.readFolder);
      memory.setU32(result, writeEntries(memory.part(buffer, count), found, BigInt.asUintN(64, cookie)));
    },
  };
}

/** Writes the entries from a place on. An entry that has no room is cut, which tells the program that there are more. */
function writeEntries(into: Uint8Array, found: FolderDescriptor, cookie: bigint): number {
  if (cookie === 0n) {
    const inode = found.folder.status(".")?.inode ?? 1n;
    const own = [".", ".."].map((name) => ({ name, inode, type: FILETYPE.folder }));
    found.entries = [...own, ...found.folder.entries()];
  }
  let used = 0;
  const first = cookie > BigInt(found.entries.length) ? found.entries.length : Number(cookie);
  for (let i = first; i < found.entries.length && used < into.length; i++) {
    const { name, inode, type } = found.entries[i] as (typeof found.entries)[number];
    const text = encodeText(name);
    const bytes = new Uint8Array(ENTRY.bytes + text.length);
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(i + 1), true);
    view.setBigUint64(ENTRY.inode, inode, true);
    view.setUint32(ENTRY.name, text.length, true);
    view.setUint8(ENTRY.type, type);
    bytes.set(text, ENTRY.bytes);
    const part = bytes.subarray(0, into.length - used);
    into.set(part, used);
    used += part.length;
  }
  return used;
}
