// @ts-check
// Dispatch ids of the job through which the strip steps.
/** Task → page: it is there. */
export const THERE = 1;
/** Page → task: all are. */
export const BEGIN = 2;
/** Task → page: the sum that it has, an i32. */
export const SUM = 3;
