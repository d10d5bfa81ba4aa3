// What the two sides of `pamir run` agree on: the dispatch ids.

/** Task 0 announces a file: its size as a f64 in the header. */
export const BEGIN = 1;
/** The file's next bytes. */
export const CHUNK = 2;
/** The file is complete. */
export const END = 3;
/** Task 1 has made place for the file. */
export const READY = 4;
/** Task 1 has everything. */
export const DONE = 5;
/** Task 1's digest of it, 32 bytes. */
export const DIGEST = 6;
