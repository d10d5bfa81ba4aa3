// How large what is published may be: for the tests and the bench.

/**
 * Bytes of `import "pamir"`, minified and gzipped: what a program loads at first. 30 KB are for messages, 5 for one-sided
 * operations, 2 for browsers and deaths, 6 for calls, streams and tasks that come later, 8 for traces, debug mode, what a dump
 * says, and contexts that close, 8 for self-pacing transfers, 3 for the engine thread, 1 for bounds on what others say, 4 for
 * buffers, kept and given regions, 8 for arguments that are checked, failures that are told, waits that learn and puts that
 * notify, 1 for messages that are broken off, 4 for tasks of other nodes, 1 for processes and links that join them, a tenth for
 * waits that look for packets, 3 for errors with their fields and causes, and for handlers that hear of their callers, 3 for
 * loops over messages that end, sends that wait for room, how tasks ended, and calls that no handler takes, a half for texts,
 * views of regions and names that are nearest, two fifths for a class for each decision of one-sided operations and of the
 * receiver, 6 for values that are cloned, a half for what JSON would lose, a half for values in two parts, a third for memory
 * that is given back, a third for ports to tasks, 20 bytes for batches that C calls begin, 90 for memories
 * that are another program's, 40 for work that conditions begin. Of these, launch() and the kernels' bytes are loaded with the
 * first job, 21 KB: each task loads anew what is here, and launches none. So is the twin.
 */
export const BUNDLE_MAX = 73_200;

/**
 * Bytes of what is loaded when it is needed: 12 KB for launch(), 9 for the kernels' bytes, 12 KB where tasks share no memory,
 * 9 for the code of the monitor, by the thread
 * that launches a job in Node, 8 for that of the engine thread, which has the engine's part of the twin, 35 for geometries
 * and collective operations, 3 of them for reductions in wasm, 1 for promises of which one advances for all, 1 for members
 * that end while others make a geometry or before they have closed it, or keep active messages, 1 for members that compare in
 * debug mode what they call, a third for members that close a geometry instead of coming to what is made of it, or give
 * shrink() up and call it again, a fifth for processes that go on without their launcher, a fifth for pages on older systems, 6
 * for types of transfers, 11 for shared regions, counters, grids and aggregators, 1 of them for items of several kinds and
 * lengths, 1.5 for many items at once and in place, a half for comparing what members give, a quarter for the output of failed
 * processes and for tasks that lack descriptors, a quarter for frames that are not copied, a quarter for folders that are one
 * user's alone, two thirds for short operations in one function, a half for those that
 * kernels do for programs in C, a half for geometries that are made by calls that block, and
 * for reductions that take what an earlier one has made, 50
 * bytes for ports to tasks, 50 for last looks, a half for what a new memory begins with, 13 for the twin, 1.3 for
 * blocks in another program's memory, a third for traces that are read in part, without halves of arrows.
 * What only Node can use is not counted: bundlers for browsers get dist/absent.js for it.
 */
export const LATER_MAX = 140_850;

/**
 * Bytes that `pamir/web` adds on a page to what launch() loads, minified and gzipped: 8 KB for seals, 22 for sessions, links
 * and the agent of a node,
 * a third of one for round trips that are longer than a context's turn, a third for frames and packets that are not copied, a
 * sixth for strangers that hold all connections, a sixth for finding ws, a quarter for acknowledgments that go with data.
 */
export const WEB_MAX = 30_490;

/**
 * Bytes that it loads for a job at a NATS server, minified and gzipped: 5 KB of them are for links, and for the answers of a
 * steward, an eighth for a connect that never answers.
 */
export const WEB_NATS_MAX = 10_760;

/**
 * Bytes that `pamir/pool` adds to `import "pamir"`, minified and gzipped, without what values are encoded with: a sixth for
 * places, signals, streams and loans that outlive what they were for, a sixth for texts that say what is wrong, 2.8 for what is
 * moved: its checks, its ports, and what comes later than its call, a fifth for pauses behind deaths, a fifth for
 * callbacks of calls that were given up, 30 bytes for the copying of uneven places.
 */
export const POOL_MAX = 16_090;

/** Bytes that `pamir/piscina` adds to `import "pamir"`, minified and gzipped, in the thread that has the pool. Its workers load less. */
export const PISCINA_MAX = 6_486;

/** Bytes that `pamir/mpi` adds to `import "pamir"`, minified and gzipped: 5 KB of them are the matching engine, in wasm and as twin, a sixth for ends of ranks, 60 bytes for the last communicator, 170 for `abort()`, 130 for payloads whose sender ends, or that find no room. */
export const MPI_MAX = 12_880;

/** Bytes of pamir.wasm: 400 of them are for descriptors and rget FIFOs that go to other nodes, 50 for pages of extents. */
export const WASM_MAX = 16_450;

/**
 * Bytes of the collectives' wasm module: some 57 loops, one for each operation and type, those that pack, and one that copies.
 * It is a sixth of that gzipped.
 */
export const COLLECTIVE_WASM_MAX = 21_700;

/** Bytes of the wasm module of MPI's matching engine, which a task loads with its first MPI program. */
export const MPI_WASM_MAX = 2_730;
