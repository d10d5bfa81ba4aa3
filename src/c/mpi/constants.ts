// Numbers of MPI's C interface. Source: MPI 5.0, chapter 20 (the application binary interface). include/mpi.h has the same.
import type { ElementType, Operation } from "../../index.js";

export const SUCCESS = 0;

/** Error classes. */
export const ERR = {
  BUFFER: 1,
  COUNT: 2,
  TYPE: 3,
  TAG: 4,
  COMM: 5,
  RANK: 6,
  REQUEST: 7,
  ROOT: 8,
  GROUP: 9,
  OP: 10,
  TOPOLOGY: 11,
  DIMS: 12,
  ARG: 13,
  UNKNOWN: 14,
  TRUNCATE: 15,
  OTHER: 16,
  INTERN: 17,
  IN_STATUS: 19,
  DISP: 26,
  INFO_KEY: 31,
  INFO_NOKEY: 32,
  INFO_VALUE: 33,
  INFO: 34,
  KEYVAL: 36,
  LOCKTYPE: 37,
  NO_MEM: 39,
  RMA_ATTACH: 46,
  RMA_RANGE: 48,
  RMA_SHARED: 49,
  RMA_SYNC: 50,
  SIZE: 52,
  UNSUPPORTED_OPERATION: 55,
  WIN: 56,
  RMA_FLAVOR: 57,
  ERRHANDLER: 61,
  LASTCODE: 16383,
  /** Of the proposal for fault tolerance (ULFM), beyond the numbers of the standard. */
  PROC_FAILED: 0x4001,
  REVOKED: 0x4002,
  PROC_FAILED_PENDING: 0x4003,
} as const;

export const ANY_SOURCE = -1;
export const ANY_TAG = -2;
export const PROC_NULL = -3;
export const UNDEFINED = -32766;
/** Largest tag. */
export const TAG_UB = 0x7fffffff;
/** In place of a buffer. */
export const IN_PLACE = 1;

/** HandleTable. Those of the program's own objects begin at FIRST_OWN. */
export const COMM_NULL = 0x100;
export const COMM_WORLD = 0x101;
export const COMM_SELF = 0x102;
export const GROUP_NULL = 0x108;
export const GROUP_EMPTY = 0x109;
export const WIN_NULL = 0x110;
export const MESSAGE_NULL = 0x128;
export const MESSAGE_NO_PROC = 0x129;
export const INFO_NULL = 0x130;
export const INFO_ENV = 0x131;
export const ERRHANDLER_NULL = 0x140;
export const ERRORS_ARE_FATAL = 0x141;
export const ERRORS_RETURN = 0x142;
export const ERRORS_ABORT = 0x143;
export const REQUEST_NULL = 0x180;
export const OP_NULL = 0x20;
export const OP_NO_OP = 61;
export const DATATYPE_NULL = 0x200;
/** The standard reserves the smaller ones. */
export const FIRST_OWN = 0x1000;

/** Comparisons of groups and communicators. */
export const IDENT = 201;
export const CONGRUENT = 202;
export const SIMILAR = 203;
export const UNEQUAL = 204;

/** Windows: kinds of locks, how they came about, how their memory behaves, assertions. */
export const LOCK_EXCLUSIVE = 301;
export const LOCK_SHARED = 302;
export const FLAVOR = { CREATE: 311, ALLOCATE: 312, DYNAMIC: 313, SHARED: 314 } as const;
export const WIN_UNIFIED = 321;
export const MODE_NOPRECEDE = 2048;
export const MODE_NOSUCCEED = 16384;

/** The kind of split by memories. */
export const COMM_TYPE_SHARED = 221;

/** In place of a key of attributes, and of the functions with it. */
export const KEYVAL_INVALID = 0;
export const NULL_FUNCTION = 0;
/** Not 1, as in the standard's binary interface: in a table of functions, that is the place of the program's first one. */
export const DUPLICATE_FUNCTION = -1;

/** Levels of thread support. */
export const THREAD_FUNNELED = 1024;

/** Fields of a status, in words. */
export const STATUS = { SOURCE: 0, TAG: 1, ERROR: 2, BYTES: 3, CANCELED: 4, WORDS: 8 } as const;

/** Operations, by their handles. */
export const OPERATIONS: Readonly<Record<number, Operation>> = {
  33: "sum",
  34: "min",
  35: "max",
  36: "product",
  40: "and",
  41: "or",
  42: "xor",
  48: "logicalAnd",
  49: "logicalOr",
  50: "logicalXor",
  56: "minloc",
  57: "maxloc",
  60: "copy",
  61: "noop",
};

/** Predefined types of C in 32-bit WebAssembly: their names, bytes, and as which elements they are reduced. */
export const BASIC_TYPES: Readonly<Record<number, readonly [name: string, bytes: number, element?: ElementType]>> = {
  513: ["MPI_AINT", 4, "i32"],
  514: ["MPI_COUNT", 8, "i64"],
  515: ["MPI_OFFSET", 8, "i64"],
  519: ["MPI_PACKED", 1],
  520: ["MPI_SHORT", 2, "i16"],
  521: ["MPI_INT", 4, "i32"],
  522: ["MPI_LONG", 4, "i32"],
  523: ["MPI_LONG_LONG", 8, "i64"],
  524: ["MPI_UNSIGNED_SHORT", 2, "u16"],
  525: ["MPI_UNSIGNED", 4, "u32"],
  526: ["MPI_UNSIGNED_LONG", 4, "u32"],
  527: ["MPI_UNSIGNED_LONG_LONG", 8, "u64"],
  528: ["MPI_FLOAT", 4, "f32"],
  530: ["MPI_C_FLOAT_COMPLEX", 8, "c64"],
  531: ["MPI_CXX_FLOAT_COMPLEX", 8, "c64"],
  532: ["MPI_DOUBLE", 8, "f64"],
  534: ["MPI_C_DOUBLE_COMPLEX", 16, "c128"],
  535: ["MPI_CXX_DOUBLE_COMPLEX", 16, "c128"],
  544: ["MPI_LONG_DOUBLE", 16],
  552: ["MPI_FLOAT_INT", 8, "f32_i32"],
  553: ["MPI_DOUBLE_INT", 16, "f64_i32"],
  554: ["MPI_LONG_INT", 8, "i32_i32"],
  555: ["MPI_2INT", 8, "i32_i32"],
  568: ["MPI_C_BOOL", 1, "u8"],
  569: ["MPI_CXX_BOOL", 1, "u8"],
  572: ["MPI_WCHAR", 4, "i32"],
  576: ["MPI_INT8_T", 1, "i8"],
  577: ["MPI_UINT8_T", 1, "u8"],
  579: ["MPI_CHAR", 1, "i8"],
  580: ["MPI_SIGNED_CHAR", 1, "i8"],
  581: ["MPI_UNSIGNED_CHAR", 1, "u8"],
  583: ["MPI_BYTE", 1, "u8"],
  584: ["MPI_INT16_T", 2, "i16"],
  585: ["MPI_UINT16_T", 2, "u16"],
  592: ["MPI_INT32_T", 4, "i32"],
  593: ["MPI_UINT32_T", 4, "u32"],
  600: ["MPI_INT64_T", 8, "i64"],
  601: ["MPI_UINT64_T", 8, "u64"],
};
