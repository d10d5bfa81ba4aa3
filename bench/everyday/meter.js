// @ts-check
// How every program measures: it repeats a round for a while, and counts after a warm-up.

/** Part of the timed seconds that goes before them. */
const WARM_UP = 0.25;
const CACHE_LINE = 64;

/**
 * Repeats `round` for a number of seconds.
 * @param {number} seconds
 * @param {() => unknown} round may return a promise
 * @returns {Promise<number>} seconds of one round
 */
export async function repeat(seconds, round) {
  const warm = performance.now() + seconds * 1000 * WARM_UP;
  do await round();
  while (performance.now() < warm);
  const start = performance.now();
  let rounds = 0;
  let over = start;
  do {
    await round();
    rounds++;
    over = performance.now();
  } while (over < start + seconds * 1000);
  return (over - start) / 1000 / rounds;
}

/** As `repeat`, for rounds that block, so that no promise is counted. @param {number} seconds @param {() => void} round */
export function repeatBlocking(seconds, round) {
  const warm = performance.now() + seconds * 1000 * WARM_UP;
  do round();
  while (performance.now() < warm);
  const start = performance.now();
  let rounds = 0;
  let over = start;
  do {
    round();
    rounds++;
    over = performance.now();
  } while (over < start + seconds * 1000);
  return (over - start) / 1000 / rounds;
}

/** So that what is read is used. */
let sink = 0;

/** Reads one byte of every cache line. @param {Uint8Array} bytes */
export function touch(bytes) {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += CACHE_LINE) sum += bytes[at] ?? 0;
  sink = (sink + sum) | 0;
}

/** Fills a buffer. @param {Uint8Array} bytes @param {number} value */
export function fill(bytes, value) {
  bytes.fill(value);
}

/** Adds up all words of a buffer. @param {Uint8Array} bytes a multiple of 4, at a multiple of 4 */
export function sumOf(bytes) {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
  let sum = 0;
  for (let i = 0; i < words.length; i++) sum = (sum + (words[i] ?? 0)) | 0;
  return sum;
}
