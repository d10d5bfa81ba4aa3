// @ts-check
// What both kinds of victims have in common: how they end, and the words that they share with the bench.
/** Words: the victim is at its work; it is to end; messages that were taken from it. */
export const READY = 0;
export const END = 1;
export const TAKEN = 2;
/** Byte at which the time is that a victim writes as the last thing it does. */
export const STAMP = 16;
export const SHARED_BYTES = 24;

/** Milliseconds of a clock that all threads of a process share. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

/**
 * Ends this thread.
 * @param {string} how
 * @param {SharedArrayBuffer} shared
 */
export function end(how, shared) {
  const stamp = new Float64Array(shared, STAMP, 1);
  stamp[0] = now();
  if (how === "throw") throw new RangeError("thrown on purpose");
  if (how === "exit") process.exit(3);
  const hoard = [];
  // Out of memory: the last of these is when it last ran.
  for (;;) {
    stamp[0] = now();
    hoard.push(new Array(10_000).fill(hoard.length));
  }
}
