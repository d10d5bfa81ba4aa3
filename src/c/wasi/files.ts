// What a program's files are: folders and files of a host, or of a memory. Their calls name one component, and follow no link:
// paths.ts walks paths, so that one place has the rules that keep a program within its folders.

/** All of them throw a WasiFailure, whose number the program gets. */
export interface Folder {
  /** What has a name, links not followed; undefined if nothing has. "." is the folder itself. */
  status(name: string): FileStatus | undefined;
  /** All names but "." and "..", in any order. */
  entries(): FolderEntry[];
  /** The folder of a name. */
  folder(name: string): Folder;
  /** Opens a file. @throws ELOOP a symbolic link has the name */
  open(name: string, how: FileAccess): ProgramFile;
  /** Makes a folder. @throws EEXIST */
  createFolder(name: string): void;
  /** Removes an empty folder. @throws ENOTEMPTY */
  removeFolder(name: string): void;
  /** Removes a file, or a link. */
  removeFile(name: string): void;
  /** The target of a symbolic link. @throws EINVAL it is none */
  readLink(name: string): string;
  /** Makes a symbolic link. */
  createLink(name: string, target: string): void;
  /** Renames, and replaces what has the new name, as POSIX says. @throws EXDEV the other folder is not of this kind */
  rename(name: string, to: Folder, toName: string): void;
  /** A second name for a file. @throws EPERM the first one is a folder's */
  link(name: string, to: Folder, toName: string): void;
  /** Nanoseconds since 1970. "." is the folder itself. */
  setTimes(name: string, accessed: bigint, modified: bigint): void;
}

/** A file that is open. A name that is removed leaves an open file as it is. Offsets and lengths are bytes. */
export interface ProgramFile {
  status(): FileStatus;
  /** @returns how many bytes; 0: the file ends */
  read(into: Uint8Array, offset: number): number;
  /** Bytes between the end and `offset` become 0. @returns how many bytes */
  write(bytes: Uint8Array, offset: number): number;
  /** Writes at the end, wherever another writer has left it. @returns how many bytes */
  append(bytes: Uint8Array): number;
  /** Cuts it off, or lengthens it by bytes of 0. */
  setSize(size: number): void;
  /** Nanoseconds since 1970. */
  setTimes(accessed: bigint, modified: bigint): void;
  /** Has the host store what was written. @param dataOnly not its times */
  sync(dataOnly: boolean): void;
  close(): void;
}

export interface FileAccess {
  readonly reads: boolean;
  readonly writes: boolean;
  /** An absent file is made. */
  readonly creates: boolean;
  /** EEXIST if there is one. */
  readonly exclusive: boolean;
  readonly truncates: boolean;
}

export interface FileStatus {
  readonly device: bigint;
  /** Not 0. */
  readonly inode: bigint;
  /** A number of FILETYPE. */
  readonly type: number;
  readonly links: bigint;
  readonly size: bigint;
  /** Nanoseconds since 1970. */
  readonly accessed: bigint;
  readonly modified: bigint;
  readonly changed: bigint;
}

export interface FolderEntry {
  readonly name: string;
  readonly inode: bigint;
  readonly type: number;
}

/** A folder that a program finds at its start, by the path that it knows. */
export interface Preopen {
  /** As the program's C library compares paths: `/`, `.`, `/data`. */
  readonly path: string;
  /** Its files. */
  readonly folder: Folder;
}
