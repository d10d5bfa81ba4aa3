// What the two sides of `pamir stream` agree on: the dispatch ids.

/** Task 0 announces a file: its size as a f64 in the header. */
export const BEGIN = 1;
/** The file's next bytes. */
export const CHUNK = 2;
/** The file is complete. */
export const END = 3;
/** Task 1 has made place for the file; for one that is put: the handle of a region as a f64 in the header. */
export const READY = 4;
/** Task 1 has everything. */
export const DONE = 5;
/** Task 1's digest of it, 32 bytes. */
export const DIGEST = 6;
/** As BEGIN, of a file that is put into a region of task 1. */
export const BEGIN_PUT = 7;
/** The region is complete. */
export const END_PUT = 8;
