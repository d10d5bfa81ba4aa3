// Numbers of include/pami.h: values, and byte offsets of fields in its structs, for 32-bit addresses.
import type { Attributes, ElementType, Operation } from "../../index.js";

/** Results of PAMI that no call of the public API returns, which throws instead. */
export const RESULT = { INVAL: 2, UNIMPL: 3 } as const;

/** In place of a pointer. */
export const NULL = 0;
/** In place of a buffer. */
export const IN_PLACE = -1;

/** Hints, two bits each: where a handler's word of hints has them. */
export const HINT = { DEFAULT: 0, ENABLE: 1, DISABLE: 2 } as const;
export const HINT_SHIFTS = {
  multicontext: 0,
  longHeader: 2,
  recvContiguous: 4,
  recvCopy: 6,
  recvImmediate: 8,
  consistency: 10,
  bufferRegistered: 12,
  remoteAsyncProgress: 14,
  useRdma: 16,
  useShmem: 18,
} as const;
export const QUEUE_IMMEDIATE_SHIFT = 20;

/** pami_configuration_t. The value has 8 bytes. */
export const CONFIGURATION = { NAME: 0, VALUE: 8, BYTES: 16 } as const;
/** pami_send_immediate_t, and behind it the callbacks of pami_send_t. */
export const SEND = {
  HEADER: 0,
  HEADER_BYTES: 4,
  DATA: 8,
  DATA_BYTES: 12,
  DISPATCH: 16,
  TO: 24,
  COOKIE: 28,
  LOCAL_FN: 32,
  REMOTE_FN: 36,
} as const;
/** pami_recv_t. */
export const RECEIVE = { COOKIE: 0, LOCAL_FN: 4, ADDRESS: 8, TYPE: 12, OFFSET: 16, DATA_FN: 20, BYTES: 28 } as const;
/** pami_rma_t, and the addresses behind it; then rdone_fn of a put. */
export const RMA = { TO: 0, BYTES: 8, COOKIE: 12, DONE_FN: 16, LOCAL: 20, REMOTE: 24, REMOTE_DONE_FN: 28 } as const;
/** The same with memory regions: pami_rdma_t behind pami_rma_t. */
export const RDMA = { LOCAL: 20, LOCAL_OFFSET: 24, REMOTE: 28, REMOTE_OFFSET: 32, REMOTE_DONE_FN: 36 } as const;
/** pami_rmw_t. */
export const RMW = {
  TO: 0,
  COOKIE: 8,
  DONE_FN: 12,
  LOCAL: 16,
  REMOTE: 20,
  VALUE: 24,
  TEST: 28,
  OPERATION: 32,
  TYPE: 36,
} as const;
/** Operations of an rmw: two bits, and a number above them. */
export const RMW_FETCH = 1;
export const RMW_COMPARE = 2;
export const RMW_MODIFY = [undefined, "set", "add", "or", "and", "xor"] as const;
/** pami_memregion_t: the handle's lower and upper half, where it begins in the region of its program, and how long it is. */
export const MEMREGION = { HANDLE: 0, HANDLE_HIGH: 4, START: 8, BYTES: 12, SIZE: 16 } as const;
/** pami_metadata_t. */
export const METADATA = { NAME: 0, VERSION: 4, RANGE_HI: 16, CORRECT: 28, BYTES: 48 } as const;
/** Bits of its check_correct: all types and operations; buffers in place. */
export const CORRECT_BITS: number = (1 << 5) | (1 << 11);
/** pami_xfer_t. */
export const XFER = { DONE_FN: 0, COOKIE: 4, ALGORITHM: 8, COMMAND: 16 } as const;

/** Names of attributes. Those that are not here can't be queried. */
export const ATTRIBUTES: Readonly<Record<number, keyof Attributes>> = {
  101: "CLIENT_CONST_CONTEXTS",
  102: "CLIENT_HWTHREADS_AVAILABLE",
  104: "CLIENT_MEM_SIZE",
  105: "CLIENT_NUM_TASKS",
  106: "CLIENT_NUM_LOCAL_TASKS",
  107: "CLIENT_LOCAL_TASKS",
  108: "CLIENT_NUM_CONTEXTS",
  109: "CLIENT_PROCESSOR_NAME",
  110: "CLIENT_TASK_ID",
  112: "CLIENT_WTICK",
  200: "CONTEXT_DISPATCH_ID_MAX",
  300: "DISPATCH_RECV_IMMEDIATE_MAX",
  301: "DISPATCH_SEND_IMMEDIATE_MAX",
};
export const CLIENT_MEMREGION_SIZE = 103;
export const CLIENT_WTIMEBASE_MHZ = 111;
/** PAMI_GEOMETRY_OPTIMIZE, …_NONCONTIG, …_MEMORY_OPTIMIZE: all are 0 here. */
export const GEOMETRY_ATTRIBUTES: readonly number[] = [400, 401, 402];

/** Types, by their handles: bytes of an element, and as what it is reduced. */
export const TYPES: Readonly<Record<number, readonly [bytes: number, element?: ElementType]>> = {
  1: [1, "u8"],
  2: [1, "i8"],
  3: [1, "u8"],
  4: [2, "i16"],
  5: [2, "u16"],
  6: [4, "i32"],
  7: [4, "u32"],
  8: [4, "i32"],
  9: [4, "u32"],
  10: [8, "i64"],
  11: [8, "u64"],
  12: [4, "f32"],
  13: [8, "f64"],
  14: [16],
  15: [1, "u8"],
  16: [2, "u16"],
  17: [4, "u32"],
  18: [8, "u64"],
  19: [8, "c64"],
  20: [16, "c128"],
  21: [8, "i32_i32"],
  22: [8, "f32_i32"],
  23: [16, "f64_i32"],
};

/** Reductions, by what stands for their functions. */
export const OPERATIONS: Readonly<Record<number, Operation>> = {
  [-1]: "copy",
  [-2]: "noop",
  [-3]: "max",
  [-4]: "min",
  [-5]: "sum",
  [-6]: "product",
  [-7]: "logicalAnd",
  [-8]: "logicalOr",
  [-9]: "logicalXor",
  [-10]: "and",
  [-11]: "or",
  [-12]: "xor",
  [-13]: "maxloc",
  [-14]: "minloc",
};
/** PAMI_DATA_COPY. */
export const DATA_COPY = -1;
