// Tuning constants: numbers that change how fast the code is, and that no area's layout depends on. Shared: compiled by asc
// and imported by TypeScript.

export const REGION_COUNT_DEFAULT: u32 = 1024;

export const FIFO_COUNT_DEFAULT: u32 = 4;

export const SLOT_COUNT_DEFAULT: u32 = 64;

/** Most records that one lane may put into one batch: so a flooding origin leaves place for the others. */
export const EVENT_LANE_MAX: u32 = 128;

/**
 * Records of one size that advance() looks at without waiting for those before. A processor that runs ahead fetches their
 * lines; beyond the last record it would take lines from the producer, which writes them next.
 */
export const RUN_MAX: u32 = 16;

/** A new lane: 16 KiB of ring, 6 pages in all, largest record 7,680 bytes. A pair that talks both ways: 48 KiB. */
export const LANE_BYTES_DEFAULT: u32 = 16384;
/** A lane that was replaced for messages beyond the first lane's largest record: in the second-level cache still. */
export const LANE_BYTES_GROWN: u32 = 262144;
/** A lane is polled in every round while no more than this many are; beyond, one that is idle loses its ready bit. */
export const ATTENDED_KEEP: u32 = 4;
/** Idle rounds after which a lane beyond ATTENDED_KEEP is no longer polled. */
export const ATTENDED_IDLE_MAX: u32 = 16;

/** A payload of so many bytes or more goes in a buffer, where the heap has room for it. */
export const BUFFER_PAYLOAD_MIN: u32 = 16384;
/** A pool grows to so many bytes before it uses a buffer again: beyond a second-level cache, within a third. */
export const POOL_FOOTPRINT: u32 = 4194304;
/** Bytes in buffers that one target has not read yet; at least two buffers. */
export const POOL_UNREAD_MAX: u32 = 4194304;
/** Pools of all tasks together have at most this part of the heap: a half. */
export const POOL_HEAP_SHIFT: u32 = 1;

/** Bytes that the engine moves in one go: then it is the next FIFO's turn. */
export const SLICE_BYTES: u32 = 262144;
/** What is no longer waits for no slice of another's: an engine thread is not asked for it if nothing is before it. */
export const SHORT_BYTES: u32 = 4096;

/** Loads between two polls that found nothing: 8 was best of 0, 8, 16, 32, 64, 128 (Zen 5: 77 ns; 128: 104 ns). */
export const POLL_PAUSE: u32 = 8;
/**
 * Loads before the first poll while messages stream: a consumer on the producer's heels moves each line twice for each
 * record. 45.7 M messages/s with 128, 46.5 with 192, 46.1 with 256, 44.4 with 320 (Zen 5,
 * a handler that only counts).
 */
export const STREAM_PAUSE: u32 = 192;
/**
 * Divisions of who finds that the engine thread has not come to its completions yet: without them, the line of the mask is
 * away when that thread is to set a bit, and where the two share a core its copies are slower by a tenth. 64 KiB puts, 8 in
 * flight, of a bare copy, taking turns in the same process, medians of eight processes: 0.81 without, 0.84 with 16, 0.87 with
 * 32, 0.88 with 64, and more with 32 than without in each of them (Zen 5; 32 take 95 ns). Processes differ by more than that.
 */
export const ENGINE_PAUSE: u32 = 32;

/**
 * A producer of small records stores into so many bytes ahead at once: each commit waits for the lines of all earlier
 * stores, and four come in the time of one. 44.4 → 46.7 M messages/s; a line at a time gains nothing (Zen 5, a handler
 * that only counts).
 */
export const AHEAD_BYTES: u32 = 256;
/**
 * release() gives bytes back once so many are read, or this part of the ring (or the origin wants room): fewer, longer
 * writes; but before they leave the first-level cache, see RETAKE_MAX. Never does it keep so many that the largest record
 * has no room: who only polls would not come to give them back.
 */
export const RELEASE_BYTES: u32 = 2048;
export const RELEASE_SHIFT: u32 = 3;
/**
 * The consumer stores into each line that it frees, while these are fewer bytes: a producer gets a line that was
 * modified elsewhere faster than one that is shared. 3,904 B: 17 → 26 GB/s; from 32 KiB on it only costs (Zen 5).
 */
export const RETAKE_MAX: u32 = 32768;
