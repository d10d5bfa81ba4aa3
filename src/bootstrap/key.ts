// The job key: 32 random bytes that all processes of a job share, and no other process has.
//
//  PAMIR_KEY_FILE=path   a file of this user, which no other user may read or write: 32 bytes, or 64 hexadecimal digits
//                        and maybe a line feed
//  PAMIR_KEY_FD=n        an inherited descriptor: a file, pipe or socket with the same and nothing behind it
//  neither               with PMI, rank 0 makes a key and sends it through the launcher's server. It is as secret there as
//                        the launcher's own connections: Hydra's connections between hosts are readable
//
// takeKey() removes both variables, so programs that the process starts later don't inherit them. A key is in no variable,
// no command line, no error and no log.
import type { Stats } from "node:fs";
import { PamiError } from "../core/error.js";
import { after } from "../support/timers.js";
import { needModule } from "./node.js";
import { quote, reasonText, secondsText } from "./text.js";

/** Bytes of a job key. */
export const JOB_KEY_BYTES = 32;
/** Longest form of a key: hexadecimal digits and CR LF. */
const KEY_TEXT_MAX = 2 * JOB_KEY_BYTES + 2;
/** Bits of a file's mode that let other users read, write or execute it. */
const OTHERS_MASK = 0o077;
/** In milliseconds: how long the starter may take to write the key into a pipe. */
const PIPE_MS = 30_000;
/** Least descriptor: below are standard input, output and error. */
const DESCRIPTOR_MIN = 3;
/** The key under which rank 0 publishes its job key, or its fingerprint. */
const PUBLISHED = "pamir-key";
const FINGERPRINT_BYTES = 16;

/** Variables that can be removed, such as `process.env`. */
export type RemovableEnvironment = Record<string, string | undefined>;

/** A new key. */
export function makeKey(): Uint8Array {
  return new Uint8Array(needModule("crypto").randomBytes(JOB_KEY_BYTES));
}

/** Checks a key that a program gives. @throws PAMIR_KEY @returns a copy */
export function checkKey(name: string, key: unknown): Uint8Array {
  if (!(key instanceof Uint8Array)) throw new PamiError("PAMIR_KEY", `${name} is ${typeof key}, not a Uint8Array`);
  if (key.length !== JOB_KEY_BYTES) {
    throw new PamiError("PAMIR_KEY", `${name} has ${key.length} bytes, not ${JOB_KEY_BYTES}`);
  }
  // A file that was made, and never written, is full of zeros.
  if (key.every((byte) => byte === key[0]))
    throw new PamiError("PAMIR_KEY", `${name} has ${JOB_KEY_BYTES} equal bytes`);
  return key.slice();
}

/**
 * The key that the environment names. Both variables are removed from the environment, even if takeKey() throws.
 * @returns undefined if neither variable is set
 * @throws PAMIR_KEY if a variable makes no sense, the file is open to other users, or its content is no key
 */
export async function takeKey(env: RemovableEnvironment): Promise<Uint8Array | undefined> {
  const { PAMIR_KEY_FILE, PAMIR_KEY_FD } = env;
  // A variable that is set to undefined would be inherited as "undefined".
  delete env.PAMIR_KEY_FILE;
  delete env.PAMIR_KEY_FD;
  if (PAMIR_KEY_FILE !== undefined && PAMIR_KEY_FD !== undefined) {
    throw new PamiError("PAMIR_KEY", "both PAMIR_KEY_FILE and PAMIR_KEY_FD are set: one of them is to name the key");
  }
  if (PAMIR_KEY_FILE !== undefined) return readKeyFile(PAMIR_KEY_FILE);
  if (PAMIR_KEY_FD !== undefined) return readKeyDescriptor(PAMIR_KEY_FD);
  return undefined;
}

function readKeyFile(path: string): Uint8Array {
  const fs = needModule("fs");
  const name = `the key file ${quote(path)} (PAMIR_KEY_FILE)`;
  let descriptor: number;
  try {
    // Without waiting for a writer, if the file is a pipe.
    descriptor = fs.openSync(path, fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0));
  } catch (error) {
    throw new PamiError("PAMIR_KEY", `${name} can't be opened: ${reasonText(error)}`, { cause: error });
  }
  try {
    // Checks the open file, not the path, which could be another file by now.
    const stat = fs.fstatSync(descriptor);
    if (!stat.isFile()) throw new PamiError("PAMIR_KEY", `${name} is no regular file`);
    checkOwner(name, stat);
    return parseKey(name, readFile(descriptor));
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Checks owner and mode, on systems that have them. */
function checkOwner(name: string, { mode, uid }: { mode: number; uid: number }): void {
  const user = globalThis.process.geteuid?.();
  if (user === undefined) return;
  // The superuser could read and write the file anyway.
  if (uid !== user && uid !== 0)
    throw new PamiError("PAMIR_KEY", `${name} belongs to user ${uid}, not to user ${user}`);
  if ((mode & OTHERS_MASK) !== 0) {
    const octal = (mode & 0o777).toString(8).padStart(4, "0");
    throw new PamiError("PAMIR_KEY", `${name} has mode ${octal}: other users may use it; make it 0600 or 0400`);
  }
}

/** All bytes of a file, or enough to see that the file is too long. */
function readFile(descriptor: number): Uint8Array {
  const fs = needModule("fs");
  const bytes = new Uint8Array(KEY_TEXT_MAX + 1);
  let length = 0;
  for (let count = -1; count !== 0 && length < bytes.length; length += count) {
    count = fs.readSync(descriptor, bytes, length, bytes.length - length, null);
  }
  return bytes.subarray(0, length);
}

async function readKeyDescriptor(text: string): Promise<Uint8Array> {
  const fs = needModule("fs");
  const descriptor = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (descriptor < DESCRIPTOR_MIN) {
    throw new PamiError("PAMIR_KEY", `PAMIR_KEY_FD is ${quote(text)}, not a descriptor from ${DESCRIPTOR_MIN} up`);
  }
  const name = `the key in descriptor ${descriptor} (PAMIR_KEY_FD)`;
  let stat: Stats;
  try {
    stat = fs.fstatSync(descriptor);
  } catch (error) {
    throw new PamiError("PAMIR_KEY", `${name} can't be read: ${reasonText(error)}`, { cause: error });
  }
  if (stat.isFile()) {
    try {
      return parseKey(name, readFile(descriptor));
    } finally {
      fs.closeSync(descriptor);
    }
  }
  if (!stat.isFIFO() && !stat.isSocket()) throw new PamiError("PAMIR_KEY", `${name} is no file, pipe or socket`);
  return parseKey(name, await readPipe(name, descriptor));
}

/** All bytes of a pipe or socket, up to its end, or enough to see that they are too many. */
function readPipe(name: string, fd: number): Promise<Uint8Array> {
  const { Socket } = needModule("net");
  return new Promise((resolve, reject) => {
    const socket = new Socket({ fd, readable: true, writable: false });
    const bytes: number[] = [];
    const settle = (error?: unknown): void => {
      stop();
      socket.destroy();
      if (error === undefined) resolve(Uint8Array.from(bytes));
      else if (error instanceof PamiError) reject(error);
      else reject(new PamiError("PAMIR_KEY", `${name} can't be read: ${reasonText(error)}`, { cause: error }));
    };
    const stop = after(PIPE_MS, () => {
      settle(
        new PamiError("PAMIR_KEY", `${name} did not end within ${secondsText(PIPE_MS)}: ${bytes.length} bytes came`),
      );
    });
    socket.on("data", (part: Uint8Array) => {
      bytes.push(...part.subarray(0, KEY_TEXT_MAX + 1));
      if (bytes.length > KEY_TEXT_MAX) settle();
    });
    socket.on("end", () => settle());
    socket.on("error", settle);
  });
}

/** A key in one of its two forms. @throws PAMIR_KEY without the bytes */
function parseKey(name: string, bytes: Uint8Array): Uint8Array {
  if (bytes.length === JOB_KEY_BYTES) return checkKey(name, bytes);
  const text = String.fromCharCode(...bytes).replace(/\r?\n$/, "");
  if (text.length !== 2 * JOB_KEY_BYTES || !/^[\da-fA-F]+$/.test(text)) {
    const length = bytes.length > KEY_TEXT_MAX ? `more than ${KEY_TEXT_MAX}` : `${bytes.length}`;
    const right = `${JOB_KEY_BYTES} bytes, nor ${2 * JOB_KEY_BYTES} hexadecimal digits`;
    throw new PamiError("PAMIR_KEY", `${name} has ${length} bytes: it is neither ${right}`);
  }
  return checkKey(
    name,
    Uint8Array.from(text.match(/../g) as string[], (digits) => Number.parseInt(digits, 16)),
  );
}

/** The part of a bootstrap that agreeOnKey() needs. */
interface Exchange {
  readonly rank: number;
  put(key: string, value: Uint8Array): Promise<void>;
  get(key: string): Promise<Uint8Array | undefined>;
  barrier(): Promise<void>;
}

/**
 * Gives all processes the same key, or names a process with a different key. All processes call agreeOnKey().
 * @param exchange must be unreadable for other users: a key that rank 0 makes travels through it as plain bytes
 * @param own the key of the environment, if there is one
 * @throws PAMIR_KEY if only some processes have a key of their own, or a different one
 */
export async function agreeOnKey(exchange: Exchange, own: Uint8Array | undefined): Promise<Uint8Array> {
  // The first byte says whether a fingerprint follows, or the key itself.
  if (exchange.rank === 0) {
    const key = own ?? makeKey();
    await exchange.put(
      PUBLISHED,
      Uint8Array.of(own === undefined ? 0 : 1, ...(own === undefined ? key : fingerprintOf(key))),
    );
    await exchange.barrier();
    return key;
  }
  await exchange.barrier();
  const published = (await exchange.get(PUBLISHED)) ?? new Uint8Array(0);
  const [isFingerprint, rest] = [published[0] === 1, published.subarray(1)];
  if (rest.length !== (isFingerprint ? FINGERPRINT_BYTES : JOB_KEY_BYTES)) {
    throw new PamiError("PAMIR_KEY", `rank 0 has published a job key of ${published.length} bytes`);
  }
  const here = `rank ${exchange.rank}`;
  if (!isFingerprint && own === undefined) return checkKey("the job key of rank 0", rest);
  if (own === undefined) throw new PamiError("PAMIR_KEY", `rank 0 has a job key of its environment, ${here} has none`);
  if (!isFingerprint) throw new PamiError("PAMIR_KEY", `${here} has a job key of its environment, rank 0 has none`);
  if (!needModule("crypto").timingSafeEqual(fingerprintOf(own), rest)) {
    throw new PamiError("PAMIR_KEY", `${here} has another job key than rank 0`);
  }
  return own;
}

/** A digest that tells keys apart, and reveals nothing else about a key. */
function fingerprintOf(key: Uint8Array): Uint8Array {
  const mac = needModule("crypto").createHmac("sha256", key).update("pamir job key 1 fingerprint").digest();
  return new Uint8Array(mac.subarray(0, FINGERPRINT_BYTES));
}
