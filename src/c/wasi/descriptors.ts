// The table of a program's descriptors: standard streams, the folders that it was given, and what it has opened.
import type { Folder, FolderEntry, Preopen, ProgramFile } from "./files.js";
import { FOLDER_RIGHTS, fail, INHERITED_RIGHTS, INPUT_RIGHTS, OUTPUT_RIGHTS } from "./numbers.js";

interface Opened {
  /** What the program may do. */
  rights: bigint;
  /** What the program may do with what it opens by this descriptor. */
  inherited: bigint;
  /** Bits of FLAG. */
  flags: number;
}

export interface StreamDescriptor extends Opened {
  readonly kind: "stream";
  /** 0: input. */
  readonly stream: 0 | 1 | 2;
}

export interface FileDescriptor extends Opened {
  readonly kind: "file";
  readonly file: ProgramFile;
  /** Where the next read or write begins: bytes. */
  position: number;
}

export interface FolderDescriptor extends Opened {
  readonly kind: "folder";
  readonly folder: Folder;
  /** What the program calls it, if it was given. */
  readonly preopened: string | undefined;
  /** The entries when the program began to read them: a cookie is a place in this list. */
  entries: readonly FolderEntry[];
}

export type Descriptor = StreamDescriptor | FileDescriptor | FolderDescriptor;

/** As Linux's usual limit. */
const DESCRIPTORS_MAX = 1024;

export class Descriptors {
  readonly #table: (Descriptor | undefined)[];

  constructor(folders: readonly Preopen[]) {
    const stream = (number: 0 | 1 | 2): StreamDescriptor => {
      const rights = number === 0 ? INPUT_RIGHTS : OUTPUT_RIGHTS;
      return { kind: "stream", stream: number, rights, inherited: 0n, flags: 0 };
    };
    this.#table = [stream(0), stream(1), stream(2)];
    for (const { path, folder } of folders) {
      const [rights, inherited] = [FOLDER_RIGHTS, INHERITED_RIGHTS];
      this.#table.push({ kind: "folder", folder, preopened: path, entries: [], rights, inherited, flags: 0 });
    }
  }

  /** @throws EBADF, or ENOTCAPABLE where the descriptor lacks a right */
  get(fd: number, right = 0n): Descriptor {
    const found = this.#table[fd] ?? fail("BADF");
    if ((found.rights & right) !== right) fail("NOTCAPABLE");
    return found;
  }

  folder(fd: number, right = 0n): FolderDescriptor {
    const found = this.get(fd);
    if (found.kind !== "folder") fail("NOTDIR");
    return this.get(fd, right) as FolderDescriptor;
  }

  /** A file, whose bytes have places. */
  file(fd: number, right = 0n): FileDescriptor {
    const found = this.get(fd);
    if (found.kind === "folder") fail("ISDIR");
    if (found.kind === "stream") fail("SPIPE");
    return this.get(fd, right) as FileDescriptor;
  }

  /** Whether one more has room: asked before a file is opened. */
  needOne(): void {
    if (this.#table.length >= DESCRIPTORS_MAX && !this.#table.includes(undefined)) fail("MFILE");
  }

  /** @returns the least free number, as POSIX says */
  add(descriptor: Descriptor): number {
    const free = this.#table.indexOf(undefined);
    const fd = free === -1 ? this.#table.length : free;
    this.#table[fd] = descriptor;
    return fd;
  }

  close(fd: number): void {
    const found = this.get(fd);
    this.#table[fd] = undefined;
    if (found.kind === "file") found.file.close();
  }

  /** Gives a descriptor the number of another one, which is closed. */
  renumber(from: number, to: number): void {
    const found = this.get(from);
    this.get(to);
    if (from === to) return;
    this.close(to);
    this.#table[to] = found;
    this.#table[from] = undefined;
  }

  /** Closes all files of a program that has ended. */
  closeAll(): void {
    for (const fd of this.#table.keys()) if (this.#table[fd] !== undefined) this.close(fd);
  }
}
