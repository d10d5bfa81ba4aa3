// Tuning constants: numbers that change how fast the code is, and that no area's layout depends on. Shared: compiled by asc
// and imported by TypeScript.

export const REGION_COUNT_DEFAULT: u32 = 1024;

export const FIFO_COUNT_DEFAULT: u32 = 4;

export const SLOT_COUNT_DEFAULT: u32 = 64;

/** Most records of one lane in one batch, so that a flooding origin leaves room for the others. */
export const EVENT_LANE_MAX: u32 = 128;

/**
 * Most records of one size that advance() takes in one run. A processor that runs ahead prefetches their lines; beyond the
 * last record it would take lines from the producer, which writes them next.
 */
export const RUN_MAX: u32 = 16;

/** A new lane: 16 KiB of ring, 6 pages in all, largest record 7,680 bytes. A pair that talks both ways: 48 KiB. */
export const LANE_BYTES_DEFAULT: u32 = 16384;
/** A lane that replaces one for messages beyond its largest record: it still fits the second-level cache. */
export const LANE_BYTES_GROWN: u32 = 262144;
/** Most lanes that a context polls in every round. Beyond this number, an idle lane loses its ready bit. */
export const ATTENDED_KEEP: u32 = 4;
/** Idle rounds after which a lane beyond ATTENDED_KEEP is no longer polled. */
export const ATTENDED_IDLE_MAX: u32 = 16;

/** Least bytes of a payload that goes in a buffer, if the heap has room for it. */
export const BUFFER_PAYLOAD_MIN: u32 = 16384;
/** Bytes to which a pool grows before it reuses a buffer: beyond a second-level cache, within a third-level one. */
export const POOL_FOOTPRINT: u32 = 4194304;
/** Most bytes in buffers that one target has not read yet; at least two buffers. */
export const POOL_UNREAD_MAX: u32 = 4194304;
/** The pools of all tasks together use at most this part of the heap: a half. */
export const POOL_HEAP_SHIFT: u32 = 1;

/** Bytes that the engine moves at a time, before the next FIFO's turn. */
export const SLICE_BYTES: u32 = 262144;
/**
 * Most bytes of a short transfer, which waits for at most one slice of another one. If no descriptor precedes it, its own
 * task does it, even where there is an engine thread.
 */
export const SHORT_BYTES: u32 = 4096;

/** Loads between two polls that found no record: 8 was best of 0, 8, 16, 32, 64, 128 (Zen 5: 77 ns; 128: 104 ns). */
export const POLL_PAUSE: u32 = 8;
/**
 * Loads before the first poll while messages stream: a consumer close behind the producer moves each line twice for each
 * record. 45.7 M messages/s with 128, 46.5 with 192, 46.1 with 256, 44.4 with 320 (Zen 5, a handler that only counts).
 */
export const STREAM_PAUSE: u32 = 192;
/**
 * Integer divisions that a context executes after it polled the completion mask in vain (32 take 95 ns, Zen 5). Polling
 * again at once takes the mask's cache line from the engine thread. It costs a tenth of the copy rate on a shared core.
 * Measured with 64 KiB puts, 8 in flight, against a bare copy in the same process; medians of eight processes. Rates: 0.81
 * of a copy without, 0.84 with 16, 0.87 with 32, 0.88 with 64. Processes differ by more, but each was faster with 32.
 */
export const ENGINE_PAUSE: u32 = 32;

/**
 * Bytes ahead into which a producer of small records stores at once. Each commit waits for the lines of all earlier stores,
 * and four lines come in the time of one: 44.4 → 46.7 M messages/s. One line at a time gains nothing (Zen 5, a handler that
 * only counts).
 */
export const AHEAD_BYTES: u32 = 256;
/**
 * Read bytes that release() frees at once: this many, or this part of the ring (an eighth); fewer if the origin wants room.
 * Larger batches mean fewer writes, but the lines must still be in the first-level cache, see RETAKE_MAX. It never keeps so
 * many that the largest record has no room, because a context that only polls would not free them.
 */
export const RELEASE_BYTES: u32 = 2048;
export const RELEASE_SHIFT: u32 = 3;
/**
 * Most bytes that the consumer retakes: it stores into each line that it frees. A producer gets a line that another core
 * modified faster than a shared one. 3,904 B: 17 → 26 GB/s; from 32 KiB on it only costs (Zen 5).
 */
export const RETAKE_MAX: u32 = 32768;
