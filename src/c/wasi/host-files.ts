// Files of the host, by Node's synchronous calls. A name in a folder never holds a separator, and no call follows a link.
//
// Node has no calls relative to an open folder. So another process that replaces a folder by a link, between the walk of a path
// and the call, can lead a program out: the walk keeps programs in, not other writers of the folder.
import type { BigIntStats } from "node:fs";
import { nodeModule } from "../../support/host.js";
import type { FileAccess, FileStatus, Folder, FolderEntry, ProgramFile } from "./files.js";
import { ERRNO, FILETYPE, fail, WasiFailure } from "./numbers.js";

type NodeFiles = NonNullable<ReturnType<typeof nodeModule<"fs">>>;

/** How this host's files are reached. */
interface Host {
  readonly fs: NodeFiles;
  /** Backslashes separate components, and a colon ends the name of a drive or of a file. */
  readonly isWindows: boolean;
}

const MODE_FILE = 0o666;
const MODE_FOLDER = 0o777;
/** Node refuses 2^31 bytes in one call. Programs go on where a call has moved less than they asked for. */
const CALL_BYTES_MAX = 2 ** 30;
/** Nanoseconds of a second: Node takes times as seconds. */
const SECOND = 1e9;

/** The folder of a host's path. @throws a WasiFailure: the path leads to no folder, or the host has no files */
export function hostFolder(path: string, host: Partial<Host> = {}): Folder {
  const fs = host.fs ?? nodeModule("fs");
  if (fs === undefined) return fail("NOSYS");
  const isWindows = host.isWindows ?? globalThis.process?.platform === "win32";
  // A path without links: those in the preopened path are the user's own.
  const real = call(() => fs.realpathSync(path));
  if (!call(() => fs.statSync(real)).isDirectory()) fail("NOTDIR");
  return new HostFolder(real, { fs, isWindows });
}

class HostFolder implements Folder {
  readonly #path: string;
  readonly #host: Host;

  constructor(path: string, host: Host) {
    this.#path = path;
    this.#host = host;
  }

  status(name: string): FileStatus | undefined {
    const stats = call(() => this.#host.fs.lstatSync(this.#of(name), { bigint: true, throwIfNoEntry: false }));
    return stats === undefined ? undefined : statusOf(stats);
  }

  entries(): FolderEntry[] {
    const names = call(() => this.#host.fs.readdirSync(this.#path));
    return names.flatMap((name) => {
      const status = this.status(name);
      // It may have been removed since.
      return status === undefined ? [] : [{ name, inode: status.inode, type: status.type }];
    });
  }

  folder(name: string): Folder {
    if (this.#get(name).type !== FILETYPE.folder) fail("NOTDIR");
    return new HostFolder(this.#of(name), this.#host);
  }

  open(name: string, how: FileAccess): ProgramFile {
    const { O_CREAT, O_EXCL, O_TRUNC } = this.#host.fs.constants;
    // As in Linux, a folder is EISDIR only if it is written to, and a program has no call for the bytes of a folder.
    if (!(how.creates && how.exclusive) && this.status(name)?.type === FILETYPE.folder) fail("ISDIR");
    const path = this.#of(name);
    const flags =
      (how.creates ? O_CREAT : 0) | (how.creates && how.exclusive ? O_EXCL : 0) | (how.truncates ? O_TRUNC : 0);
    return new HostFile(path, openNoLink(this.#host, path, accessFlags(this.#host, how) | flags), this.#host);
  }

  createFolder(name: string): void {
    call(() => this.#host.fs.mkdirSync(this.#of(name), MODE_FOLDER));
  }

  removeFolder(name: string): void {
    if (this.#get(name).type !== FILETYPE.folder) fail("NOTDIR");
    call(() => this.#host.fs.rmdirSync(this.#of(name)));
  }

  removeFile(name: string): void {
    // Systems differ: Linux says EISDIR, others EPERM.
    if (this.#get(name).type === FILETYPE.folder) fail("ISDIR");
    call(() => this.#host.fs.unlinkSync(this.#of(name)));
  }

  readLink(name: string): string {
    return call(() => this.#host.fs.readlinkSync(this.#of(name)));
  }

  createLink(name: string, target: string): void {
    call(() => this.#host.fs.symlinkSync(target, this.#of(name)));
  }

  rename(name: string, to: Folder, toName: string): void {
    if (!(to instanceof HostFolder)) fail("XDEV");
    call(() => this.#host.fs.renameSync(this.#of(name), to.#of(toName)));
  }

  link(name: string, to: Folder, toName: string): void {
    if (!(to instanceof HostFolder)) fail("XDEV");
    const { type } = this.#get(name);
    if (type === FILETYPE.folder) fail("PERM");
    // Some systems make the second name for what the link leads to, which may be outside.
    if (type === FILETYPE.link) fail("NOTSUP");
    call(() => this.#host.fs.linkSync(this.#of(name), to.#of(toName)));
  }

  setTimes(name: string, accessed: bigint, modified: bigint): void {
    call(() => this.#host.fs.lutimesSync(this.#of(name), Number(accessed) / SECOND, Number(modified) / SECOND));
  }

  #get(name: string): FileStatus {
    return this.status(name) ?? fail("NOENT");
  }

  #of(name: string): string {
    if (name === ".") return this.#path;
    if (name === ".." || name.includes("/") || (this.#host.isWindows && /[\\:]/.test(name))) fail("NOTCAPABLE");
    return this.#path.endsWith("/") ? `${this.#path}${name}` : `${this.#path}/${name}`;
  }
}

function accessFlags({ fs }: Host, { reads, writes }: Pick<FileAccess, "reads" | "writes">): number {
  const { O_RDONLY, O_RDWR, O_WRONLY } = fs.constants;
  return writes ? (reads ? O_RDWR : O_WRONLY) : O_RDONLY;
}

/** Opens what has a path, unless it is a link: another program may have made it one since it was looked at. */
function openNoLink({ fs }: Host, path: string, flags: number): number {
  return call(() => fs.openSync(path, flags | (fs.constants.O_NOFOLLOW ?? 0), MODE_FILE));
}

class HostFile implements ProgramFile {
  readonly #path: string;
  readonly #fd: number;
  readonly #host: Host;
  /** A second descriptor, which writes at the end; the first one has pwrite(), which Linux lets write only there otherwise. */
  #appending: number | undefined;

  constructor(path: string, fd: number, host: Host) {
    this.#path = path;
    this.#fd = fd;
    this.#host = host;
  }

  status(): FileStatus {
    return statusOf(call(() => this.#host.fs.fstatSync(this.#fd, { bigint: true })));
  }

  read(into: Uint8Array, offset: number): number {
    return call(() => this.#host.fs.readSync(this.#fd, into, 0, Math.min(into.length, CALL_BYTES_MAX), offset));
  }

  write(bytes: Uint8Array, offset: number): number {
    return call(() => this.#host.fs.writeSync(this.#fd, bytes, 0, Math.min(bytes.length, CALL_BYTES_MAX), offset));
  }

  append(bytes: Uint8Array): number {
    this.#appending ??= this.#openAgain();
    // Its name is gone: no other program finds the file to append to it.
    if (this.#appending === -1) return this.write(bytes, Number(this.status().size));
    const fd = this.#appending;
    return call(() => this.#host.fs.writeSync(fd, bytes, 0, Math.min(bytes.length, CALL_BYTES_MAX), null));
  }

  setSize(size: number): void {
    call(() => this.#host.fs.ftruncateSync(this.#fd, size));
  }

  setTimes(accessed: bigint, modified: bigint): void {
    call(() => this.#host.fs.futimesSync(this.#fd, Number(accessed) / SECOND, Number(modified) / SECOND));
  }

  sync(dataOnly: boolean): void {
    call(() => (dataOnly ? this.#host.fs.fdatasyncSync(this.#fd) : this.#host.fs.fsyncSync(this.#fd)));
  }

  close(): void {
    if (this.#appending !== undefined && this.#appending !== -1) this.#host.fs.closeSync(this.#appending);
    call(() => this.#host.fs.closeSync(this.#fd));
  }

  /** A descriptor for appending to the same file; -1 if its name is gone, or another file's. */
  #openAgain(): number {
    const { fs } = this.#host;
    let fd: number;
    try {
      fd = openNoLink(this.#host, this.#path, fs.constants.O_WRONLY | fs.constants.O_APPEND);
    } catch (error) {
      if (error instanceof WasiFailure) return -1;
      throw error;
    }
    const [own, other] = [this.status(), statusOf(fs.fstatSync(fd, { bigint: true }))];
    if (own.inode === other.inode && own.device === other.device) return fd;
    fs.closeSync(fd);
    return -1;
  }
}

function statusOf(stats: BigIntStats): FileStatus {
  return {
    device: stats.dev,
    inode: stats.ino,
    type: typeOf(stats),
    links: stats.nlink,
    size: stats.size,
    accessed: stats.atimeNs,
    modified: stats.mtimeNs,
    changed: stats.ctimeNs,
  };
}

function typeOf(stats: BigIntStats): number {
  if (stats.isFile()) return FILETYPE.file;
  if (stats.isDirectory()) return FILETYPE.folder;
  if (stats.isSymbolicLink()) return FILETYPE.link;
  if (stats.isCharacterDevice()) return FILETYPE.characterDevice;
  if (stats.isBlockDevice()) return FILETYPE.blockDevice;
  return stats.isSocket() ? FILETYPE.socket : FILETYPE.unknown;
}

/** Calls the host, whose errors become the program's. */
function call<T>(what: () => T): T {
  try {
    return what();
  } catch (error) {
    if (error instanceof WasiFailure) throw error;
    const { code } = error as { code?: unknown };
    if (typeof code !== "string") throw error;
    // Node's checks of arguments: a NUL in a path, an offset beyond 2^53.
    if (code.startsWith("ERR_")) return fail("INVAL");
    throw new WasiFailure(ERRNO[code.slice(1) as keyof typeof ERRNO] ?? ERRNO.IO);
  }
}
