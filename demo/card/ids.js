// Dispatch ids of the race.
export const BALL = 1;
export const ITEM = 2;
export const ANSWER = 3;
/** To the page: Float32Array of latencies in ns. */
export const LATENCIES = 4;
/** To the page: Float64Array of messages a second. */
export const RATE = 5;
/** To a task: it ends its worker, as a crash would. */
export const KILL = 6;
