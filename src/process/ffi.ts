// The calls of the C library by which processes share a memory, and by which their threads sleep. They go through koffi, a
// package that the user installs, or through node:ffi of Node 26. Linux only.
import { PamiError } from "../core/error.js";
import { nodeModule } from "../support/host.js";
import type { CLibrary, CType, ForeignFunction } from "../support/node/foreign.js";

/** The part of koffi that is used. */
interface Koffi {
  load(library: null): { func(name: string, result: string, parameters: readonly string[]): ForeignFunction };
  address(view: ArrayBufferView): bigint;
  errno(): number;
}
/** The part of node:ffi that is used. */
interface NodeFfi {
  readonly DynamicLibrary: new (
    path: null,
  ) => {
    getFunction(
      name: string,
      signature: { readonly return: string; readonly arguments: readonly string[] },
    ): (...values: unknown[]) => number | bigint;
  };
  getRawPointer(source: ArrayBufferLike): bigint;
  getInt32(pointer: bigint, offset: number): number;
}

/** The path that stands for node:ffi. */
export const NODE_FFI = "node:ffi";
const NODE_TYPES: Readonly<Record<CType, string>> = {
  int: "int32",
  uint: "uint32",
  ulong: "uint64",
  int64_t: "int64",
  intptr_t: "int64",
  uintptr_t: "uint64",
  size_t: "uint64",
  str: "string",
  "void *": "pointer",
};

/** x86-64 and arm64, the processors for which koffi has binaries and whose numbers are known here. */
const FUTEX_NUMBERS: Readonly<Record<string, number>> = { x64: 202, arm64: 98 };
const [FUTEX_WAIT, FUTEX_WAKE] = [0, 1];
const ETIMEDOUT = 110;
const WAKE_ALL = 0x7fffffff;
const [PROT_READ_WRITE, MAP_SHARED_FIXED] = [1 | 2, 1 | 16];
const [MFD_CLOEXEC, MFD_ALLOW_SEALING] = [1, 2];
const MADV_POPULATE_WRITE = 23;
const EINTR = 4;
const EMFILE = 24;
/** A file mode. Linux gives a memory 0777. */
const OWNER_ONLY = 0o600;
const [F_ADD_SEALS, F_DUPFD_CLOEXEC] = [1033, 1030];
/** SEAL, SHRINK, GROW: a process that truncated the memory would cause a SIGBUS in the others. */
const SEALS = 1 | 2 | 4;

const [PR_SET_PDEATHSIG, SIGKILL] = [1, 9];
const [SYS_PIDFD_OPEN, ESRCH] = [434, 3];
const [O_RDWR, O_NONBLOCK, O_CLOEXEC] = [2, 0o4000, 0o2000000];
const POLLIN = 1;

/** Foreign calls. Each takes some 100 ns more than the call itself (koffi 3.3). */
export interface Ffi {
  /** Path of koffi, or of its binary, or NODE_FFI: for other threads and processes. */
  readonly path: string;
  /** Number of the system call futex(). */
  readonly futex: number;
  /** Address of a buffer's first byte in this process. */
  addressOf(buffer: ArrayBufferLike): number;
  /** Makes a memory without a name, of a fixed size, which its user alone may open. Returns its descriptor. @throws PAMIR_NO_PROCESSES */
  makeMemory(bytes: number): number;
  /** Maps a descriptor's bytes over the addresses from `address` on. @throws PAMIR_NO_PROCESSES */
  mapOver(address: number, bytes: number, descriptor: number): void;
  /**
   * Whether populate() works at an address. Linux has that call since 5.14, for addresses that are multiples of its own pages,
   * which may be larger than 4096 bytes.
   */
  canPopulate(address: number): boolean;
  /**
   * Has the system provide the pages of mapped bytes, and keeps what they hold.
   * @param address a multiple of 4096
   * @returns false: it has no memory for them
   */
  populate(address: number, bytes: number): boolean;
  /**
   * The same by a descriptor of the memory.
   * @param offset of the bytes in the memory
   * @returns false: it has no memory for them, or knows no such call either
   */
  allocate(descriptor: number, offset: number, bytes: number): boolean;
  /** Another descriptor of the same file, which processes that this one starts do not inherit. @throws PAMIR_NO_PROCESSES */
  duplicate(descriptor: number): number;
  /** Blocks while the word at an address reads `seen`. Returns whether it has done so for so many milliseconds. */
  futexWait(address: number, seen: number, milliseconds: number): boolean;
  /** Wakes all threads that sleep on the word at an address. */
  futexWake(address: number): void;
  /**
   * Opens a descriptor that becomes readable at the end of a process. Returns -1 if there is no such process.
   * @throws PAMIR_NO_PROCESSES if the system has no such descriptors
   */
  openProcess(pid: number): number;
  /** Makes a pipe. Returns a descriptor of both of its ends, which does not block. @throws PAMIR_NO_PROCESSES */
  makePipe(): number;
  /** Opens a file for reading and writing, without blocking. Returns -1 if that fails. */
  open(path: string): number;
  close(descriptor: number): void;
  /** Writes bytes to a descriptor, if it takes them at once. */
  write(descriptor: number, bytes: Uint8Array): void;
  /** Makes a descriptor that becomes readable once 8 bytes are written to it. @throws PAMIR_NO_PROCESSES */
  makeEvent(): number;
  /** Blocks until one of the descriptors is readable. Returns those; a negative descriptor is skipped. */
  awaitReadable(descriptors: readonly number[]): number[];
  /** Has the system kill this process once the thread that started it has ended. */
  dieWithParent(): void;
}

/** The error for what processes that share a memory lack on this host. */
export function noProcesses(why: string, cause?: unknown): PamiError {
  return new PamiError("PAMIR_NO_PROCESSES", `processes can't share memory here: ${why}`, { cause });
}

/** Whether this process can open no more descriptors. */
function isFull(): boolean {
  const { closeSync, openSync } = nodeModule("fs") as typeof import("node:fs");
  try {
    closeSync(openSync("/dev/null", "r"));
    return false;
  } catch (error) {
    return (error as { code?: string }).code === "EMFILE";
  }
}

function noDescriptor(what: string, cause?: unknown): PamiError {
  const text = `${what} fails: this process has no descriptor left, raise ulimit -n`;
  return new PamiError("PAMIR_DESCRIPTORS", text, { cause });
}

/** What Node throws if it does not load a package. */
interface LoadError {
  readonly code?: string;
  readonly message: string;
  /** The file that may not be read. */
  readonly resource?: string;
}

function whyNotLoaded(path: string, { code, message, resource }: LoadError): string {
  if (path === NODE_FFI) return `${NODE_FFI} fails: ${message}`;
  if (code === "ERR_DLOPEN_DISABLED") return "node --permission takes --allow-addons for koffi, and no --no-addons";
  if (code === "ERR_ACCESS_DENIED") return `node --permission takes --allow-fs-read for koffi's ${resource}`;
  return `koffi fails: ${message}`;
}

/** The C library, and what else the process has loaded, by koffi. @throws Error koffi can't be loaded */
export function byKoffi(path: string): CLibrary {
  const { createRequire } = nodeModule("module") as typeof import("node:module");
  const koffi = createRequire(path)(path) as Koffi;
  const library = koffi.load(null);
  return {
    func: (name, result, parameters) => library.func(name, result, parameters),
    addressOf: (buffer) => Number(koffi.address(new Uint8Array(buffer))),
    errno: () => koffi.errno(),
  };
}

/** The C library by node:ffi, whose 64-bit integers are BigInts. */
function byNode(): CLibrary {
  const ffi = (process as { getBuiltinModule(id: string): unknown }).getBuiltinModule(NODE_FFI) as NodeFfi;
  const library = new ffi.DynamicLibrary(null);
  const bind = (name: string, result: CType, parameters: readonly CType[]) =>
    library.getFunction(name, { return: NODE_TYPES[result], arguments: parameters.map((type) => NODE_TYPES[type]) });
  // C has it as a macro, errno.
  const place = bind("__errno_location", "void *", []);
  return {
    func(name, result, parameters) {
      const call = bind(name, result, parameters);
      const isWide = parameters.map((type) => NODE_TYPES[type].endsWith("64"));
      return (...values) =>
        Number(call(...values.map((value, i) => (isWide[i] ? BigInt(value as number) : (value ?? 0n)))));
    },
    addressOf: (buffer) => Number(ffi.getRawPointer(buffer)),
    errno: () => ffi.getInt32(place() as bigint, 0),
  };
}

/** Loads koffi, or node:ffi. @throws PAMIR_NO_PROCESSES, PAMIR_DESCRIPTORS */
export function openFfi(path: string): Ffi {
  const number = FUTEX_NUMBERS[process.arch];
  if (process.platform !== "linux" || number === undefined) {
    throw noProcesses(`this is ${process.platform} on ${process.arch}, and it takes Linux on x64 or arm64`);
  }
  let c: CLibrary;
  try {
    c = path === NODE_FFI ? byNode() : byKoffi(path);
  } catch (cause) {
    // koffi tries several files, and may throw the error of another one than that which can't be opened.
    if (/too many open files/i.test((cause as LoadError).message) || isFull()) throw noDescriptor("koffi", cause);
    throw noProcesses(whyNotLoaded(path, cause as LoadError), cause);
  }
  const memfd = c.func("memfd_create", "int", ["str", "uint"]);
  const fchmod = c.func("fchmod", "int", ["int", "uint"]);
  const ftruncate = c.func("ftruncate", "int", ["int", "int64_t"]);
  const fcntl = c.func("fcntl", "int", ["int", "int", "int"]);
  const mmap = c.func("mmap", "intptr_t", ["uintptr_t", "size_t", "int", "int", "int", "int64_t"]);
  const madvise = c.func("madvise", "int", ["uintptr_t", "size_t", "int"]);
  const fallocate = c.func("fallocate", "int", ["int", "int", "int64_t", "int64_t"]);
  const poll = c.func("poll", "int", ["void *", "ulong", "int"]);
  const pipe2 = c.func("pipe2", "int", ["void *", "int"]);
  const open = c.func("open", "int", ["str", "int"]);
  const close = c.func("close", "int", ["int"]);
  const write = c.func("write", "int64_t", ["int", "void *", "size_t"]);
  const eventfd = c.func("eventfd", "int", ["uint", "int"]);
  const prctl = c.func("prctl", "int", ["int", "ulong"]);
  const syscall = c.func("syscall", "int64_t", ["int64_t", "uintptr_t", "int64_t", "int64_t", "void *"]);
  const check = (call: string, result: number): number => {
    if (result >= 0) return result;
    const errno = c.errno();
    if (errno === EMFILE) throw noDescriptor(call);
    throw noProcesses(`${call} fails with errno ${errno}`);
  };
  const openFile = (path: string): number => open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  /** struct timespec: seconds and nanoseconds. */
  const limit = new BigInt64Array(2);
  return {
    path,
    futex: number,
    addressOf: (buffer) => c.addressOf(buffer),
    makeMemory(bytes) {
      const descriptor = check("memfd_create", memfd("pamir", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      check("fchmod", fchmod(descriptor, OWNER_ONLY));
      check(`ftruncate to ${bytes} bytes`, ftruncate(descriptor, bytes));
      check("fcntl(F_ADD_SEALS)", fcntl(descriptor, F_ADD_SEALS, SEALS));
      return descriptor;
    },
    mapOver(address, bytes, descriptor) {
      // A pointer in the upper half of the addresses is an error: -1.
      check(`mmap of ${bytes} bytes`, mmap(address, bytes, PROT_READ_WRITE, MAP_SHARED_FIXED, descriptor, 0));
    },
    // Linux checks the advice and the address, and does nothing for no bytes.
    canPopulate: (address) => madvise(address, 0, MADV_POPULATE_WRITE) === 0,
    populate: (address, bytes) => madvise(address, bytes, MADV_POPULATE_WRITE) === 0,
    allocate(descriptor, offset, bytes) {
      for (;;) {
        if (fallocate(descriptor, 0, offset, bytes) === 0) return true;
        // A signal has come. What was allocated by then is given back.
        if (c.errno() !== EINTR) return false;
      }
    },
    duplicate: (descriptor) => check("fcntl(F_DUPFD_CLOEXEC)", fcntl(descriptor, F_DUPFD_CLOEXEC, 0)),
    futexWait(address, seen, milliseconds) {
      limit[0] = BigInt(Math.floor(milliseconds / 1000));
      limit[1] = BigInt(Math.floor((milliseconds % 1000) * 1e6));
      return syscall(number, address, FUTEX_WAIT, seen, limit) < 0 && c.errno() === ETIMEDOUT;
    },
    openProcess(pid) {
      const descriptor = syscall(SYS_PIDFD_OPEN, pid, 0, 0, null);
      if (descriptor >= 0 || c.errno() === ESRCH) return descriptor;
      return check("pidfd_open", descriptor);
    },
    makePipe() {
      const ends = new Int32Array(2);
      check("pipe2", pipe2(ends, O_CLOEXEC));
      // Linux opens a pipe for both directions. Not by node:fs: a worker closes what that has opened a second time.
      const both = openFile(`/proc/self/fd/${ends[0]}`);
      for (const end of ends) close(end);
      return check("open of a pipe", both);
    },
    open: openFile,
    close: (descriptor) => void close(descriptor),
    write(descriptor, bytes) {
      write(descriptor, bytes, bytes.length);
    },
    makeEvent: () => check("eventfd", eventfd(0, O_CLOEXEC)),
    awaitReadable(descriptors) {
      // struct pollfd: the descriptor, then 16 bits of what is asked, and 16 of what has come.
      const polled = new Int32Array(descriptors.flatMap((descriptor) => [descriptor, POLLIN]));
      poll(polled, descriptors.length, -1);
      return descriptors.filter((descriptor, i) => descriptor >= 0 && (polled[2 * i + 1] as number) >>> 16 !== 0);
    },
    dieWithParent() {
      check("prctl(PR_SET_PDEATHSIG)", prctl(PR_SET_PDEATHSIG, SIGKILL));
    },
    futexWake(address) {
      syscall(number, address, FUTEX_WAKE, WAKE_ALL, null);
    },
  };
}
