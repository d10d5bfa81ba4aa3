// @ts-check
// Memory that tests share with their tasks beside pamir: that of one process, or a file that several processes map.
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Milliseconds after which a wait looks again: Atomics.notify() does not reach other processes. */
export const LOOK_MS = 2;
/** Bytes of what one job has as its flags. */
const FLAGS_BYTES = 256;
const WASM_PAGE = 65_536;
const [PROT_READ_WRITE, MAP_SHARED_FIXED] = [1 | 2, 1 | 16];

/** @typedef {Int32Array<SharedArrayBuffer>} Flags */
/** What another process needs to map the same bytes. @typedef {{ path: string, bytes: number }} SharedPlace */
/** The same of flags, which have a part of a file. @typedef {SharedPlace & { offset: number }} FlagsPlace */

/** @param {number} descriptor @param {number} bytes */
async function mapFile(descriptor, bytes) {
  const { default: koffi } = await import("koffi");
  const mmap = koffi.load(null).func("mmap", "intptr_t", ["uintptr_t", "size_t", "int", "int", "int", "int64_t"]);
  const pages = bytes / WASM_PAGE;
  const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const address = Number(koffi.address(new Uint8Array(buffer)));
  if (mmap(address, bytes, PROT_READ_WRITE, MAP_SHARED_FIXED, descriptor, 0) !== address)
    throw new Error(`mmap fails with errno ${koffi.errno()}`);
  return /** @type {SharedArrayBuffer} */ (/** @type {unknown} */ (buffer));
}

/**
 * Makes a memory of at least so many bytes that other processes can map as long as this one runs.
 * @param {number} least
 */
export async function makeShared(least) {
  const bytes = Math.ceil(least / WASM_PAGE) * WASM_PAGE;
  const folder = mkdtempSync(join(tmpdir(), "pamir-shared-"));
  // It stays open: other processes of this user open it by this process's number for it.
  const descriptor = openSync(join(folder, "memory"), "wx+", 0o600);
  rmSync(folder, { recursive: true });
  ftruncateSync(descriptor, bytes);
  const place = { path: `/proc/${process.pid}/fd/${descriptor}`, bytes };
  return { place, buffer: await mapFile(descriptor, bytes) };
}

/** Maps what makeShared() has made in another process. @param {SharedPlace} place */
export async function mapShared({ path, bytes }) {
  const descriptor = openSync(path, "r+");
  try {
    return await mapFile(descriptor, bytes);
  } finally {
    closeSync(descriptor);
  }
}

/** The file of this thread's flags: each memory takes some 10 GiB of addresses. @type {ReturnType<typeof makeShared> | undefined} */
let file;
let taken = 0;

/**
 * Words for a job, and what its tasks get to find them: the words themselves, if they are threads.
 * @param {boolean} isForProcesses
 * @returns {Promise<{ flags: Flags, place: Flags | FlagsPlace }>}
 */
export async function makeFlags(isForProcesses) {
  if (!isForProcesses) {
    const flags = new Int32Array(new SharedArrayBuffer(FLAGS_BYTES));
    return { flags, place: flags };
  }
  file ??= makeShared(WASM_PAGE);
  const { buffer, place } = await file;
  const offset = (taken++ * FLAGS_BYTES) % place.bytes;
  const flags = new Int32Array(buffer, offset, FLAGS_BYTES / 4).fill(0);
  return { flags, place: { ...place, offset } };
}

/**
 * The words that makeFlags() has placed.
 * @param {Flags | FlagsPlace} place
 * @returns {Promise<Flags>}
 */
export async function findFlags(place) {
  if (place instanceof Int32Array) return place;
  return new Int32Array(await mapShared(place), place.offset, FLAGS_BYTES / 4);
}
