// Numbers of WASI snapshot preview 1: error numbers, rights, kinds of files, flags.
// Source: WebAssembly/WASI, legacy/preview1/docs.md.

/** Error numbers, those that this implementation returns. */
export const ERRNO = {
  ACCES: 2,
  BADF: 8,
  BUSY: 10,
  DQUOT: 19,
  EXIST: 20,
  FAULT: 21,
  FBIG: 22,
  ILSEQ: 25,
  INVAL: 28,
  IO: 29,
  ISDIR: 31,
  LOOP: 32,
  MFILE: 33,
  MLINK: 34,
  NAMETOOLONG: 37,
  NFILE: 41,
  NOENT: 44,
  NOMEM: 48,
  NOSPC: 51,
  NOSYS: 52,
  NOTDIR: 54,
  NOTEMPTY: 55,
  NOTSUP: 58,
  NXIO: 60,
  OVERFLOW: 61,
  PERM: 63,
  PIPE: 64,
  ROFS: 69,
  SPIPE: 70,
  TXTBSY: 74,
  XDEV: 75,
  NOTCAPABLE: 76,
} as const;

/** A call of a program that fails: the program gets the number. */
export class WasiFailure extends Error {
  readonly errno: number;

  constructor(errno: number) {
    super(`WASI error ${Object.entries(ERRNO).find(([, number]) => number === errno)?.[0] ?? errno}`);
    this.name = "WasiFailure";
    this.errno = errno;
  }
}

/** Throws the failure of a call. */
export function fail(name: keyof typeof ERRNO): never {
  throw new WasiFailure(ERRNO[name]);
}

/** Kinds of files. */
export const FILETYPE = {
  unknown: 0,
  blockDevice: 1,
  characterDevice: 2,
  folder: 3,
  file: 4,
  socket: 6,
  link: 7,
} as const;

const bit = (place: number): bigint => 1n << BigInt(place);

/** What a descriptor lets a program do. */
export const RIGHT = {
  datasync: bit(0),
  read: bit(1),
  seek: bit(2),
  setFlags: bit(3),
  sync: bit(4),
  tell: bit(5),
  write: bit(6),
  advise: bit(7),
  allocate: bit(8),
  createFolder: bit(9),
  createFile: bit(10),
  linkSource: bit(11),
  linkTarget: bit(12),
  open: bit(13),
  readFolder: bit(14),
  readLink: bit(15),
  renameSource: bit(16),
  renameTarget: bit(17),
  pathStatus: bit(18),
  pathSetSize: bit(19),
  pathSetTimes: bit(20),
  status: bit(21),
  setSize: bit(22),
  setTimes: bit(23),
  symbolicLink: bit(24),
  removeFolder: bit(25),
  removeFile: bit(26),
  poll: bit(27),
} as const;

const allOf = (...rights: readonly bigint[]): bigint => rights.reduce((all, one) => all | one, 0n);

const ALL = allOf(...Object.values(RIGHT));
/** Rights that a file can have. */
export const FILE_RIGHTS = allOf(
  ...[RIGHT.datasync, RIGHT.read, RIGHT.seek, RIGHT.setFlags, RIGHT.sync, RIGHT.tell, RIGHT.write, RIGHT.advise],
  ...[RIGHT.allocate, RIGHT.status, RIGHT.setSize, RIGHT.setTimes, RIGHT.poll],
);
/** Rights that a folder can have. */
export const FOLDER_RIGHTS =
  ALL &
  ~allOf(RIGHT.read, RIGHT.seek, RIGHT.tell, RIGHT.write, RIGHT.advise, RIGHT.allocate, RIGHT.setSize, RIGHT.poll);
/** Rights that what is opened in a folder can have. */
export const INHERITED_RIGHTS = FILE_RIGHTS | FOLDER_RIGHTS;
/** Rights of standard input, and of the two outputs: a C library takes what can't seek for a terminal, and writes line by line. */
export const INPUT_RIGHTS = allOf(RIGHT.read, RIGHT.setFlags, RIGHT.status, RIGHT.poll);
export const OUTPUT_RIGHTS = allOf(RIGHT.write, RIGHT.setFlags, RIGHT.status, RIGHT.poll);

/** Flags of a descriptor. */
export const FLAG = { append: 1, datasync: 2, nonblocking: 4, readSync: 8, sync: 16 } as const;
export const FLAGS_ALL = 31;
/** Flags with which a path is opened. */
export const OPEN = { create: 1, folder: 2, exclusive: 4, truncate: 8 } as const;
export const OPEN_ALL = 15;
/** Of a path's last component: a symbolic link is followed. */
export const FOLLOW = 1;
/** Which times are set, and to what. */
export const TIMES = { accessed: 1, accessedNow: 2, modified: 4, modifiedNow: 8 } as const;
export const TIMES_ALL = 15;

export const CLOCK = { wall: 0, monotonic: 1, process: 2, thread: 3 } as const;
export const SIGNAL_ABORT = 6;

/** Milliseconds as nanoseconds. Those since 1970 are more than a number counts. */
export function nanoseconds(milliseconds: number): bigint {
  const whole = Math.floor(milliseconds);
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((milliseconds - whole) * 1e6));
}
