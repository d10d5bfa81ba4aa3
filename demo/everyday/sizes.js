// @ts-check
// What all workers of the everyday measurements agree on.

export const BLOCK_BYTES = 2 ** 20;
/** Of each way, behind some that warm up. */
export const BARRIERS = 400;
export const WARM_BARRIERS = 100;

/** Dispatch ids: a task's region; a block has come; what was measured, to the page. */
export const REGION = 1;
export const TOOK = 2;
export const MEASURED = 3;

/**
 * @typedef {object} Measured
 * @property {number} bytesPerSecond copied from one worker to the other, a block and an answer in turn
 * @property {number} barrierUs a barrier of two workers, in µs
 */
