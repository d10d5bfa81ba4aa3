/*
 * MPI for programs that run on pamir: compile with `pamir cc`, run with `pamir run -n 4 program.wasm`.
 * Handles, constants and the layout of MPI_Status are those of MPI 5.0's application binary interface (chapter 20).
 * Each function is an import of the program: pamir provides it (docs/c.md says what is there).
 */
#ifndef PAMIR_MPI_H
#define PAMIR_MPI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MPI_VERSION 5
#define MPI_SUBVERSION 0
#define MPI_ABI_VERSION 1
#define MPI_ABI_SUBVERSION 0

/* Types of integers. */
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

/* Handles: small constants for what exists from the start. */
typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
typedef struct MPI_ABI_File *MPI_File;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Info *MPI_Info;
typedef struct MPI_ABI_Message *MPI_Message;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct MPI_ABI_Session *MPI_Session;
typedef struct MPI_ABI_Win *MPI_Win;

/* What is known of a message that was received. MPI_Get_count() reads the rest. */
typedef struct {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
} MPI_Status;

typedef void(MPI_User_function)(void *in, void *inout, int *length, MPI_Datatype *type);
typedef int(MPI_Comm_copy_attr_function)(MPI_Comm comm, int key, void *state, void *value, void *copy, int *flag);
typedef int(MPI_Comm_delete_attr_function)(MPI_Comm comm, int key, void *value, void *state);
typedef int(MPI_Win_copy_attr_function)(MPI_Win win, int key, void *state, void *value, void *copy, int *flag);
typedef int(MPI_Win_delete_attr_function)(MPI_Win win, int key, void *value, void *state);
typedef int(MPI_Copy_function)(MPI_Comm comm, int key, void *state, void *value, void *copy, int *flag);
typedef int(MPI_Delete_function)(MPI_Comm comm, int key, void *value, void *state);
typedef int(MPI_Type_copy_attr_function)(MPI_Datatype type, int key, void *state, void *value, void *copy, int *flag);
typedef int(MPI_Type_delete_attr_function)(MPI_Datatype type, int key, void *value, void *state);
typedef void(MPI_Comm_errhandler_function)(MPI_Comm *comm, int *code, ...);
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn;
typedef void(MPI_File_errhandler_function)(MPI_File *file, int *code, ...);
typedef int(MPI_Datarep_extent_function)(MPI_Datatype type, MPI_Aint *extent, void *state);
typedef int(MPI_Datarep_conversion_function)(void *buffer, MPI_Datatype type, int count, void *file_buffer,
                                             MPI_Offset position, void *state);
typedef void(MPI_Win_errhandler_function)(MPI_Win *win, int *code, ...);
typedef int(MPI_Grequest_query_function)(void *state, MPI_Status *status);
typedef int(MPI_Grequest_free_function)(void *state);
typedef int(MPI_Grequest_cancel_function)(void *state, int is_complete);

/* Operations. */
#define MPI_OP_NULL ((MPI_Op)0x20)
#define MPI_SUM ((MPI_Op)0x21)
#define MPI_MIN ((MPI_Op)0x22)
#define MPI_MAX ((MPI_Op)0x23)
#define MPI_PROD ((MPI_Op)0x24)
#define MPI_BAND ((MPI_Op)0x28)
#define MPI_BOR ((MPI_Op)0x29)
#define MPI_BXOR ((MPI_Op)0x2a)
#define MPI_LAND ((MPI_Op)0x30)
#define MPI_LOR ((MPI_Op)0x31)
#define MPI_LXOR ((MPI_Op)0x32)
#define MPI_MINLOC ((MPI_Op)0x38)
#define MPI_MAXLOC ((MPI_Op)0x39)
#define MPI_REPLACE ((MPI_Op)0x3c)
#define MPI_NO_OP ((MPI_Op)0x3d)

/* Communicators. */
#define MPI_COMM_NULL ((MPI_Comm)0x100)
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_COMM_SELF ((MPI_Comm)0x102)

/* Groups. */
#define MPI_GROUP_NULL ((MPI_Group)0x108)
#define MPI_GROUP_EMPTY ((MPI_Group)0x109)

/* Windows. */
#define MPI_WIN_NULL ((MPI_Win)0x110)

/* Files and sessions: there are none. */
#define MPI_FILE_NULL ((MPI_File)0x118)
#define MPI_SESSION_NULL ((MPI_Session)0x120)

/* Messages of matched probes. */
#define MPI_MESSAGE_NULL ((MPI_Message)0x128)
#define MPI_MESSAGE_NO_PROC ((MPI_Message)0x129)

/* Infos. */
#define MPI_INFO_NULL ((MPI_Info)0x130)
#define MPI_INFO_ENV ((MPI_Info)0x131)

/* Error handlers. */
#define MPI_ERRHANDLER_NULL ((MPI_Errhandler)0x140)
#define MPI_ERRORS_ARE_FATAL ((MPI_Errhandler)0x141)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)0x142)
#define MPI_ERRORS_ABORT ((MPI_Errhandler)0x143)

/* Requests. */
#define MPI_REQUEST_NULL ((MPI_Request)0x180)

/* Datatypes. */
#define MPI_DATATYPE_NULL ((MPI_Datatype)0x200)
#define MPI_AINT ((MPI_Datatype)0x201)
#define MPI_COUNT ((MPI_Datatype)0x202)
#define MPI_OFFSET ((MPI_Datatype)0x203)
#define MPI_PACKED ((MPI_Datatype)0x207)
#define MPI_SHORT ((MPI_Datatype)0x208)
#define MPI_INT ((MPI_Datatype)0x209)
#define MPI_LONG ((MPI_Datatype)0x20a)
#define MPI_LONG_LONG ((MPI_Datatype)0x20b)
#define MPI_LONG_LONG_INT ((MPI_Datatype)0x20b)
#define MPI_UNSIGNED_SHORT ((MPI_Datatype)0x20c)
#define MPI_UNSIGNED ((MPI_Datatype)0x20d)
#define MPI_UNSIGNED_LONG ((MPI_Datatype)0x20e)
#define MPI_UNSIGNED_LONG_LONG ((MPI_Datatype)0x20f)
#define MPI_FLOAT ((MPI_Datatype)0x210)
#define MPI_C_FLOAT_COMPLEX ((MPI_Datatype)0x212)
#define MPI_C_COMPLEX ((MPI_Datatype)0x212)
#define MPI_CXX_FLOAT_COMPLEX ((MPI_Datatype)0x213)
#define MPI_DOUBLE ((MPI_Datatype)0x214)
#define MPI_C_DOUBLE_COMPLEX ((MPI_Datatype)0x216)
#define MPI_CXX_DOUBLE_COMPLEX ((MPI_Datatype)0x217)
#define MPI_LONG_DOUBLE ((MPI_Datatype)0x220)
#define MPI_FLOAT_INT ((MPI_Datatype)0x228)
#define MPI_DOUBLE_INT ((MPI_Datatype)0x229)
#define MPI_LONG_INT ((MPI_Datatype)0x22a)
#define MPI_2INT ((MPI_Datatype)0x22b)
#define MPI_C_BOOL ((MPI_Datatype)0x238)
#define MPI_CXX_BOOL ((MPI_Datatype)0x239)
#define MPI_WCHAR ((MPI_Datatype)0x23c)
#define MPI_INT8_T ((MPI_Datatype)0x240)
#define MPI_UINT8_T ((MPI_Datatype)0x241)
#define MPI_CHAR ((MPI_Datatype)0x243)
#define MPI_SIGNED_CHAR ((MPI_Datatype)0x244)
#define MPI_UNSIGNED_CHAR ((MPI_Datatype)0x245)
#define MPI_BYTE ((MPI_Datatype)0x247)
#define MPI_INT16_T ((MPI_Datatype)0x248)
#define MPI_UINT16_T ((MPI_Datatype)0x249)
#define MPI_INT32_T ((MPI_Datatype)0x250)
#define MPI_UINT32_T ((MPI_Datatype)0x251)
#define MPI_INT64_T ((MPI_Datatype)0x258)
#define MPI_UINT64_T ((MPI_Datatype)0x259)

/* Error classes. */
enum {
  MPI_SUCCESS = 0,
  MPI_ERR_BUFFER = 1,
  MPI_ERR_COUNT = 2,
  MPI_ERR_TYPE = 3,
  MPI_ERR_TAG = 4,
  MPI_ERR_COMM = 5,
  MPI_ERR_RANK = 6,
  MPI_ERR_REQUEST = 7,
  MPI_ERR_ROOT = 8,
  MPI_ERR_GROUP = 9,
  MPI_ERR_OP = 10,
  MPI_ERR_TOPOLOGY = 11,
  MPI_ERR_DIMS = 12,
  MPI_ERR_ARG = 13,
  MPI_ERR_UNKNOWN = 14,
  MPI_ERR_TRUNCATE = 15,
  MPI_ERR_OTHER = 16,
  MPI_ERR_INTERN = 17,
  MPI_ERR_PENDING = 18,
  MPI_ERR_IN_STATUS = 19,
  MPI_ERR_ACCESS = 20,
  MPI_ERR_AMODE = 21,
  MPI_ERR_ASSERT = 22,
  MPI_ERR_BAD_FILE = 23,
  MPI_ERR_BASE = 24,
  MPI_ERR_CONVERSION = 25,
  MPI_ERR_DISP = 26,
  MPI_ERR_DUP_DATAREP = 27,
  MPI_ERR_FILE_EXISTS = 28,
  MPI_ERR_FILE_IN_USE = 29,
  MPI_ERR_FILE = 30,
  MPI_ERR_INFO_KEY = 31,
  MPI_ERR_INFO_NOKEY = 32,
  MPI_ERR_INFO_VALUE = 33,
  MPI_ERR_INFO = 34,
  MPI_ERR_IO = 35,
  MPI_ERR_KEYVAL = 36,
  MPI_ERR_LOCKTYPE = 37,
  MPI_ERR_NAME = 38,
  MPI_ERR_NO_MEM = 39,
  MPI_ERR_NOT_SAME = 40,
  MPI_ERR_NO_SPACE = 41,
  MPI_ERR_NO_SUCH_FILE = 42,
  MPI_ERR_PORT = 43,
  MPI_ERR_QUOTA = 44,
  MPI_ERR_READ_ONLY = 45,
  MPI_ERR_RMA_ATTACH = 46,
  MPI_ERR_RMA_CONFLICT = 47,
  MPI_ERR_RMA_RANGE = 48,
  MPI_ERR_RMA_SHARED = 49,
  MPI_ERR_RMA_SYNC = 50,
  MPI_ERR_SERVICE = 51,
  MPI_ERR_SIZE = 52,
  MPI_ERR_SPAWN = 53,
  MPI_ERR_UNSUPPORTED_DATAREP = 54,
  MPI_ERR_UNSUPPORTED_OPERATION = 55,
  MPI_ERR_WIN = 56,
  MPI_ERR_RMA_FLAVOR = 57,
  MPI_ERR_PROC_ABORTED = 58,
  MPI_ERR_VALUE_TOO_LARGE = 59,
  MPI_ERR_SESSION = 60,
  MPI_ERR_ERRHANDLER = 61,
  MPI_ERR_LASTCODE = 16383,
};

/* Wildcards, and ranks that are none. */
enum {
  MPI_ANY_SOURCE = -1,
  MPI_ANY_TAG = -2,
  MPI_PROC_NULL = -3,
  MPI_ROOT = -4,
  MPI_UNDEFINED = -32766,
};

/* Threads. */
enum {
  MPI_THREAD_SINGLE = 0,
  MPI_THREAD_FUNNELED = 1024,
  MPI_THREAD_SERIALIZED = 2048,
  MPI_THREAD_MULTIPLE = 4096,
};

/* Assertions about windows. */
enum {
  MPI_MODE_NOCHECK = 1024,
  MPI_MODE_NOPRECEDE = 2048,
  MPI_MODE_NOPUT = 4096,
  MPI_MODE_NOSTORE = 8192,
  MPI_MODE_NOSUCCEED = 16384,
};

/* Windows: kinds of locks, how they came about, how their memory behaves. */
enum {
  MPI_LOCK_EXCLUSIVE = 301,
  MPI_LOCK_SHARED = 302,
  MPI_WIN_FLAVOR_CREATE = 311,
  MPI_WIN_FLAVOR_ALLOCATE = 312,
  MPI_WIN_FLAVOR_DYNAMIC = 313,
  MPI_WIN_FLAVOR_SHARED = 314,
  MPI_WIN_UNIFIED = 321,
  MPI_WIN_SEPARATE = 322,
};

/* Orders of arrays. */
enum {
  MPI_ORDER_C = 12,
  MPI_ORDER_FORTRAN = 15,
};

/* How the elements of a dimension are dealt out. */
enum {
  MPI_DISTRIBUTE_NONE = 16,
  MPI_DISTRIBUTE_BLOCK = 17,
  MPI_DISTRIBUTE_CYCLIC = 18,
  MPI_DISTRIBUTE_DFLT_DARG = 19,
};

/* How a datatype was made. */
enum {
  MPI_COMBINER_NAMED = 101,
  MPI_COMBINER_DUP = 102,
  MPI_COMBINER_CONTIGUOUS = 103,
  MPI_COMBINER_VECTOR = 104,
  MPI_COMBINER_HVECTOR = 105,
  MPI_COMBINER_INDEXED = 106,
  MPI_COMBINER_HINDEXED = 107,
  MPI_COMBINER_INDEXED_BLOCK = 108,
  MPI_COMBINER_HINDEXED_BLOCK = 109,
  MPI_COMBINER_STRUCT = 110,
  MPI_COMBINER_SUBARRAY = 111,
  MPI_COMBINER_DARRAY = 112,
  MPI_COMBINER_F90_INTEGER = 113,
  MPI_COMBINER_F90_REAL = 114,
  MPI_COMBINER_F90_COMPLEX = 115,
  MPI_COMBINER_RESIZED = 116,
  MPI_COMBINER_VALUE_INDEX = 117,
};

/* Classes of MPI_Type_match_size(). */
enum {
  MPI_TYPECLASS_INTEGER = 192,
  MPI_TYPECLASS_REAL = 193,
  MPI_TYPECLASS_COMPLEX = 194,
};

/* Comparisons. */
enum {
  MPI_IDENT = 201,
  MPI_CONGRUENT = 202,
  MPI_SIMILAR = 203,
  MPI_UNEQUAL = 204,
};

/* Topologies. */
enum {
  MPI_CART = 211,
  MPI_GRAPH = 212,
  MPI_DIST_GRAPH = 213,
};

/* Kinds of MPI_Comm_split_type(). */
enum {
  MPI_COMM_TYPE_SHARED = 221,
};

/* Keys of attributes. */
enum {
  MPI_KEYVAL_INVALID = 0,
  MPI_TAG_UB = 501,
  MPI_IO = 502,
  MPI_HOST = 503,
  MPI_WTIME_IS_GLOBAL = 504,
  MPI_UNIVERSE_SIZE = 505,
  MPI_APPNUM = 506,
  MPI_LASTUSEDCODE = 507,
  MPI_WIN_BASE = 601,
  MPI_WIN_DISP_UNIT = 602,
  MPI_WIN_SIZE = 603,
  MPI_WIN_CREATE_FLAVOR = 604,
  MPI_WIN_MODEL = 605,
};

/* How files are opened, and places in them. */
enum {
  MPI_MODE_APPEND = 1,
  MPI_MODE_CREATE = 2,
  MPI_MODE_DELETE_ON_CLOSE = 4,
  MPI_MODE_EXCL = 8,
  MPI_MODE_RDONLY = 16,
  MPI_MODE_RDWR = 32,
  MPI_MODE_SEQUENTIAL = 64,
  MPI_MODE_UNIQUE_OPEN = 128,
  MPI_MODE_WRONLY = 256,
  MPI_SEEK_SET = 401,
  MPI_SEEK_CUR = 402,
  MPI_SEEK_END = 403,
};
#define MPI_DISPLACEMENT_CURRENT ((MPI_Offset)-1)

/* Lengths of texts. */
enum {
  MPI_MAX_ERROR_STRING = 512,
  MPI_MAX_INFO_KEY = 256,
  MPI_MAX_INFO_VAL = 1024,
  MPI_MAX_LIBRARY_VERSION_STRING = 8192,
  MPI_MAX_DATAREP_STRING = 128,
  MPI_MAX_OBJECT_NAME = 128,
  MPI_MAX_PORT_NAME = 1024,
  MPI_MAX_PSET_NAME_LEN = 1024,
  MPI_MAX_STRINGTAG_LEN = 1024,
  MPI_MAX_PROCESSOR_NAME = 256,
  MPI_BSEND_OVERHEAD = 512,
};

/* A rank has ended; a communicator is revoked; any rank was to send, and one has ended: of the proposal for fault tolerance (ULFM), beyond the numbers of the standard. */
#define MPIX_ERR_PROC_FAILED 0x4001
#define MPIX_ERR_REVOKED 0x4002
#define MPIX_ERR_PROC_FAILED_PENDING 0x4003

/* In place of buffers, statuses and functions. */
#define MPI_BOTTOM ((void *)0)
#define MPI_IN_PLACE ((void *)1)
#define MPI_ARGV_NULL ((char **)0)
#define MPI_ARGVS_NULL ((char ***)0)
#define MPI_ERRCODES_IGNORE ((int *)0)
#define MPI_CONVERSION_FN_NULL ((MPI_Datarep_conversion_function *)0)
#define MPI_UNWEIGHTED ((int *)10)
#define MPI_WEIGHTS_EMPTY ((int *)11)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function *)0)
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function *)0)
#define MPI_WIN_NULL_COPY_FN ((MPI_Win_copy_attr_function *)0)
#define MPI_WIN_DUP_FN ((MPI_Win_copy_attr_function *)-1)
#define MPI_WIN_NULL_DELETE_FN ((MPI_Win_delete_attr_function *)0)
#define MPI_NULL_COPY_FN ((MPI_Copy_function *)0)
#define MPI_NULL_DELETE_FN ((MPI_Delete_function *)0)
#define MPI_TYPE_NULL_COPY_FN ((MPI_Type_copy_attr_function *)0)
#define MPI_TYPE_NULL_DELETE_FN ((MPI_Type_delete_attr_function *)0)
/* The standard has 1 here, which is a function of the program in WebAssembly's table of functions. */
#define MPI_COMM_DUP_FN ((MPI_Comm_copy_attr_function *)-1)
#define MPI_DUP_FN ((MPI_Copy_function *)-1)
#define MPI_TYPE_DUP_FN ((MPI_Type_copy_attr_function *)-1)

#define PAMIR_MPI(name) __attribute__((__import_module__("mpi"), __import_name__(#name)))

/* Begin and end (src/c/mpi/environment.ts). */
PAMIR_MPI(MPI_Init) int MPI_Init(int *argc, char ***argv);
PAMIR_MPI(MPI_Init_thread) int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
PAMIR_MPI(MPI_Initialized) int MPI_Initialized(int *flag);
PAMIR_MPI(MPI_Finalize) int MPI_Finalize(void);
PAMIR_MPI(MPI_Finalized) int MPI_Finalized(int *flag);
PAMIR_MPI(MPI_Query_thread) int MPI_Query_thread(int *provided);
PAMIR_MPI(MPI_Is_thread_main) int MPI_Is_thread_main(int *flag);
PAMIR_MPI(MPI_Abort) int MPI_Abort(MPI_Comm comm, int code);
PAMIR_MPI(MPI_Wtime) double MPI_Wtime(void);
PAMIR_MPI(MPI_Wtick) double MPI_Wtick(void);
PAMIR_MPI(MPI_Get_version) int MPI_Get_version(int *version, int *subversion);
PAMIR_MPI(MPI_Get_library_version) int MPI_Get_library_version(char *text, int *length);
PAMIR_MPI(MPI_Get_processor_name) int MPI_Get_processor_name(char *name, int *length);
PAMIR_MPI(MPI_Pcontrol) int MPI_Pcontrol(const int level, ...);
/* Errors. */
PAMIR_MPI(MPI_Error_class) int MPI_Error_class(int code, int *error_class);
PAMIR_MPI(MPI_Error_string) int MPI_Error_string(int code, char *text, int *length);
PAMIR_MPI(MPI_Comm_set_errhandler) int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
PAMIR_MPI(MPI_Comm_get_errhandler) int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler);
PAMIR_MPI(MPI_Comm_create_errhandler)
int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function *call, MPI_Errhandler *handler);
PAMIR_MPI(MPI_Comm_call_errhandler) int MPI_Comm_call_errhandler(MPI_Comm comm, int code);
PAMIR_MPI(MPI_Errhandler_free) int MPI_Errhandler_free(MPI_Errhandler *handler);
PAMIR_MPI(MPI_Add_error_class) int MPI_Add_error_class(int *error_class);
PAMIR_MPI(MPI_Add_error_code) int MPI_Add_error_code(int error_class, int *code);
PAMIR_MPI(MPI_Add_error_string) int MPI_Add_error_string(int code, const char *text);
/* Memory, from malloc() (include/lib/arena.c). */
int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *pointer);
int MPI_Free_mem(void *memory);
/* Infos (src/c/mpi/objects/info.ts). */
PAMIR_MPI(MPI_Info_create) int MPI_Info_create(MPI_Info *info);
PAMIR_MPI(MPI_Info_create_env) int MPI_Info_create_env(int argc, char **argv, MPI_Info *info);
PAMIR_MPI(MPI_Info_dup) int MPI_Info_dup(MPI_Info info, MPI_Info *made);
PAMIR_MPI(MPI_Info_free) int MPI_Info_free(MPI_Info *info);
PAMIR_MPI(MPI_Info_set) int MPI_Info_set(MPI_Info info, const char *key, const char *value);
PAMIR_MPI(MPI_Info_delete) int MPI_Info_delete(MPI_Info info, const char *key);
PAMIR_MPI(MPI_Info_get) int MPI_Info_get(MPI_Info info, const char *key, int length, char *value, int *flag);
PAMIR_MPI(MPI_Info_get_string)
int MPI_Info_get_string(MPI_Info info, const char *key, int *length, char *value, int *flag);
PAMIR_MPI(MPI_Info_get_valuelen) int MPI_Info_get_valuelen(MPI_Info info, const char *key, int *length, int *flag);
PAMIR_MPI(MPI_Info_get_nkeys) int MPI_Info_get_nkeys(MPI_Info info, int *count);
PAMIR_MPI(MPI_Info_get_nthkey) int MPI_Info_get_nthkey(MPI_Info info, int index, char *key);
/* Messages (src/c/mpi/messages.ts). */
PAMIR_MPI(MPI_Send) int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
PAMIR_MPI(MPI_Ssend) int MPI_Ssend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
PAMIR_MPI(MPI_Rsend) int MPI_Rsend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
PAMIR_MPI(MPI_Bsend) int MPI_Bsend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
PAMIR_MPI(MPI_Isend)
int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Issend)
int MPI_Issend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request);
PAMIR_MPI(MPI_Irsend)
int MPI_Irsend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request);
PAMIR_MPI(MPI_Ibsend)
int MPI_Ibsend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request);
PAMIR_MPI(MPI_Send_init)
int MPI_Send_init(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request *request);
PAMIR_MPI(MPI_Ssend_init)
int MPI_Ssend_init(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request);
PAMIR_MPI(MPI_Rsend_init)
int MPI_Rsend_init(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request);
PAMIR_MPI(MPI_Bsend_init)
int MPI_Bsend_init(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request);
PAMIR_MPI(MPI_Recv)
int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status);
PAMIR_MPI(MPI_Irecv)
int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Recv_init)
int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Sendrecv)
int MPI_Sendrecv(const void *send_buffer, int send_count, MPI_Datatype send_type, int to, int send_tag, void *buffer,
                 int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status);
PAMIR_MPI(MPI_Sendrecv_replace)
int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int send_tag, int from, int tag,
                         MPI_Comm comm, MPI_Status *status);
PAMIR_MPI(MPI_Isendrecv)
int MPI_Isendrecv(const void *send_buffer, int send_count, MPI_Datatype send_type, int to, int send_tag,
                  void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request *request);
PAMIR_MPI(MPI_Isendrecv_replace)
int MPI_Isendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int send_tag, int from, int tag,
                          MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Probe) int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status);
PAMIR_MPI(MPI_Iprobe) int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status);
PAMIR_MPI(MPI_Mprobe) int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status);
PAMIR_MPI(MPI_Improbe)
int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status);
PAMIR_MPI(MPI_Mrecv)
int MPI_Mrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status);
PAMIR_MPI(MPI_Imrecv)
int MPI_Imrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request);
PAMIR_MPI(MPI_Get_count) int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count);
PAMIR_MPI(MPI_Get_elements) int MPI_Get_elements(const MPI_Status *status, MPI_Datatype type, int *count);
PAMIR_MPI(MPI_Get_elements_x) int MPI_Get_elements_x(const MPI_Status *status, MPI_Datatype type, MPI_Count *count);
PAMIR_MPI(MPI_Status_set_elements) int MPI_Status_set_elements(MPI_Status *status, MPI_Datatype type, int count);
PAMIR_MPI(MPI_Status_set_cancelled) int MPI_Status_set_cancelled(MPI_Status *status, int flag);
PAMIR_MPI(MPI_Buffer_attach) int MPI_Buffer_attach(void *buffer, int size);
PAMIR_MPI(MPI_Buffer_detach) int MPI_Buffer_detach(void *buffer, int *size);
/* Requests (src/c/mpi/completion.ts). */
PAMIR_MPI(MPI_Wait) int MPI_Wait(MPI_Request *request, MPI_Status *status);
PAMIR_MPI(MPI_Waitall) int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]);
PAMIR_MPI(MPI_Waitany) int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status);
PAMIR_MPI(MPI_Waitsome)
int MPI_Waitsome(int count, MPI_Request requests[], int *ended, int indices[], MPI_Status statuses[]);
PAMIR_MPI(MPI_Test) int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
PAMIR_MPI(MPI_Testall) int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]);
PAMIR_MPI(MPI_Testany) int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status);
PAMIR_MPI(MPI_Testsome)
int MPI_Testsome(int count, MPI_Request requests[], int *ended, int indices[], MPI_Status statuses[]);
PAMIR_MPI(MPI_Request_free) int MPI_Request_free(MPI_Request *request);
PAMIR_MPI(MPI_Request_get_status) int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status);
PAMIR_MPI(MPI_Start) int MPI_Start(MPI_Request *request);
PAMIR_MPI(MPI_Startall) int MPI_Startall(int count, MPI_Request requests[]);
PAMIR_MPI(MPI_Cancel) int MPI_Cancel(MPI_Request *request);
PAMIR_MPI(MPI_Test_cancelled) int MPI_Test_cancelled(const MPI_Status *status, int *flag);
PAMIR_MPI(MPI_Grequest_start)
int MPI_Grequest_start(MPI_Grequest_query_function *query, MPI_Grequest_free_function *release,
                       MPI_Grequest_cancel_function *cancel, void *state, MPI_Request *request);
PAMIR_MPI(MPI_Grequest_complete) int MPI_Grequest_complete(MPI_Request request);
/* Collective operations (src/c/mpi/collective/). */
PAMIR_MPI(MPI_Barrier) int MPI_Barrier(MPI_Comm comm);
PAMIR_MPI(MPI_Bcast) int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
PAMIR_MPI(MPI_Reduce)
int MPI_Reduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
PAMIR_MPI(MPI_Allreduce)
int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
PAMIR_MPI(MPI_Scan)
int MPI_Scan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
PAMIR_MPI(MPI_Exscan)
int MPI_Exscan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
PAMIR_MPI(MPI_Reduce_scatter)
int MPI_Reduce_scatter(const void *send, void *receive, const int counts[], MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm);
PAMIR_MPI(MPI_Reduce_scatter_block)
int MPI_Reduce_scatter_block(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
PAMIR_MPI(MPI_Gather)
int MPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count, MPI_Datatype type,
               int root, MPI_Comm comm);
PAMIR_MPI(MPI_Gatherv)
int MPI_Gatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int counts[],
                const int places[], MPI_Datatype type, int root, MPI_Comm comm);
PAMIR_MPI(MPI_Scatter)
int MPI_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count, MPI_Datatype type,
                int root, MPI_Comm comm);
PAMIR_MPI(MPI_Scatterv)
int MPI_Scatterv(const void *send, const int counts[], const int places[], MPI_Datatype send_type, void *receive,
                 int count, MPI_Datatype type, int root, MPI_Comm comm);
PAMIR_MPI(MPI_Allgather)
int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                  MPI_Datatype type, MPI_Comm comm);
PAMIR_MPI(MPI_Allgatherv)
int MPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int counts[],
                   const int places[], MPI_Datatype type, MPI_Comm comm);
PAMIR_MPI(MPI_Alltoall)
int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                 MPI_Datatype type, MPI_Comm comm);
PAMIR_MPI(MPI_Alltoallv)
int MPI_Alltoallv(const void *send, const int send_counts[], const int send_places[], MPI_Datatype send_type,
                  void *receive, const int counts[], const int places[], MPI_Datatype type, MPI_Comm comm);
PAMIR_MPI(MPI_Alltoallw)
int MPI_Alltoallw(const void *send, const int send_counts[], const int send_places[],
                  const MPI_Datatype send_types[], void *receive, const int counts[], const int places[],
                  const MPI_Datatype types[], MPI_Comm comm);
PAMIR_MPI(MPI_Reduce_local) int MPI_Reduce_local(const void *in, void *inout, int count, MPI_Datatype type, MPI_Op op);
/* Nonblocking collective operations (src/c/mpi/collective/prepared.ts). */
PAMIR_MPI(MPI_Ibarrier) int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Ibcast)
int MPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Ireduce)
int MPI_Ireduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request *request);
PAMIR_MPI(MPI_Iallreduce)
int MPI_Iallreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request);
PAMIR_MPI(MPI_Iscan)
int MPI_Iscan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
              MPI_Request *request);
PAMIR_MPI(MPI_Iexscan)
int MPI_Iexscan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request *request);
PAMIR_MPI(MPI_Ireduce_scatter)
int MPI_Ireduce_scatter(const void *send, void *receive, const int counts[], MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Ireduce_scatter_block)
int MPI_Ireduce_scatter_block(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Igather)
int MPI_Igather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Igatherv)
int MPI_Igatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int counts[],
                 const int places[], MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Iscatter)
int MPI_Iscatter(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                 MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Iscatterv)
int MPI_Iscatterv(const void *send, const int counts[], const int places[], MPI_Datatype send_type, void *receive,
                  int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Iallgather)
int MPI_Iallgather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                   MPI_Datatype type, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Iallgatherv)
int MPI_Iallgatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int counts[],
                    const int places[], MPI_Datatype type, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Ialltoall)
int MPI_Ialltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                  MPI_Datatype type, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Ialltoallv)
int MPI_Ialltoallv(const void *send, const int send_counts[], const int send_places[], MPI_Datatype send_type,
                   void *receive, const int counts[], const int places[], MPI_Datatype type, MPI_Comm comm,
                   MPI_Request *request);
PAMIR_MPI(MPI_Ialltoallw)
int MPI_Ialltoallw(const void *send, const int send_counts[], const int send_places[],
                   const MPI_Datatype send_types[], void *receive, const int counts[], const int places[],
                   const MPI_Datatype types[], MPI_Comm comm, MPI_Request *request);
/* Persistent collective operations: nothing of the info is used. */
PAMIR_MPI(MPI_Barrier_init) int MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Bcast_init)
int MPI_Bcast_init(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
                   MPI_Request *request);
PAMIR_MPI(MPI_Reduce_init)
int MPI_Reduce_init(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root,
                    MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Allreduce_init)
int MPI_Allreduce_init(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                       MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Scan_init)
int MPI_Scan_init(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                  MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Exscan_init)
int MPI_Exscan_init(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Reduce_scatter_init)
int MPI_Reduce_scatter_init(const void *send, void *receive, const int counts[], MPI_Datatype type, MPI_Op op,
                            MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Reduce_scatter_block_init)
int MPI_Reduce_scatter_block_init(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                                  MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Gather_init)
int MPI_Gather_init(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                    MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Gatherv_init)
int MPI_Gatherv_init(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int counts[],
                     const int places[], MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
                     MPI_Request *request);
PAMIR_MPI(MPI_Scatter_init)
int MPI_Scatter_init(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                     MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Scatterv_init)
int MPI_Scatterv_init(const void *send, const int counts[], const int places[], MPI_Datatype send_type,
                      void *receive, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request *request);
PAMIR_MPI(MPI_Allgather_init)
int MPI_Allgather_init(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                       MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Allgatherv_init)
int MPI_Allgatherv_init(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int counts[],
                        const int places[], MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Alltoall_init)
int MPI_Alltoall_init(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                      MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Alltoallv_init)
int MPI_Alltoallv_init(const void *send, const int send_counts[], const int send_places[], MPI_Datatype send_type,
                       void *receive, const int counts[], const int places[], MPI_Datatype type, MPI_Comm comm,
                       MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Alltoallw_init)
int MPI_Alltoallw_init(const void *send, const int send_counts[], const int send_places[],
                       const MPI_Datatype send_types[], void *receive, const int counts[], const int places[],
                       const MPI_Datatype types[], MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Op_create) int MPI_Op_create(MPI_User_function *call, int commutes, MPI_Op *op);
PAMIR_MPI(MPI_Op_free) int MPI_Op_free(MPI_Op *op);
PAMIR_MPI(MPI_Op_commutative) int MPI_Op_commutative(MPI_Op op, int *commutes);
/* Communicators and groups (src/c/mpi/communicators.ts). */
PAMIR_MPI(MPI_Comm_rank) int MPI_Comm_rank(MPI_Comm comm, int *rank);
PAMIR_MPI(MPI_Comm_size) int MPI_Comm_size(MPI_Comm comm, int *size);
PAMIR_MPI(MPI_Comm_dup) int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made);
PAMIR_MPI(MPI_Comm_idup) int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *made, MPI_Request *request);
PAMIR_MPI(MPI_Comm_dup_with_info) int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made);
PAMIR_MPI(MPI_Comm_set_info) int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info);
PAMIR_MPI(MPI_Comm_get_info) int MPI_Comm_get_info(MPI_Comm comm, MPI_Info *info);
PAMIR_MPI(MPI_Comm_split) int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made);
PAMIR_MPI(MPI_Comm_split_type) int MPI_Comm_split_type(MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm *made);
PAMIR_MPI(MPI_Comm_create) int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made);
PAMIR_MPI(MPI_Comm_create_group) int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made);
PAMIR_MPI(MPI_Comm_free) int MPI_Comm_free(MPI_Comm *comm);
PAMIR_MPI(MPI_Comm_disconnect) int MPI_Comm_disconnect(MPI_Comm *comm);
PAMIR_MPI(MPI_Comm_get_parent) int MPI_Comm_get_parent(MPI_Comm *comm);
PAMIR_MPI(MPI_Comm_compare) int MPI_Comm_compare(MPI_Comm one, MPI_Comm other, int *result);
PAMIR_MPI(MPI_Comm_group) int MPI_Comm_group(MPI_Comm comm, MPI_Group *group);
PAMIR_MPI(MPI_Comm_test_inter) int MPI_Comm_test_inter(MPI_Comm comm, int *flag);
PAMIR_MPI(MPI_Comm_set_name) int MPI_Comm_set_name(MPI_Comm comm, const char *name);
PAMIR_MPI(MPI_Comm_get_name) int MPI_Comm_get_name(MPI_Comm comm, char *name, int *length);
PAMIR_MPI(MPI_Comm_create_keyval)
int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *remove, int *key,
                           void *state);
PAMIR_MPI(MPI_Comm_free_keyval) int MPI_Comm_free_keyval(int *key);
PAMIR_MPI(MPI_Comm_set_attr) int MPI_Comm_set_attr(MPI_Comm comm, int key, void *value);
PAMIR_MPI(MPI_Comm_get_attr) int MPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *flag);
PAMIR_MPI(MPI_Comm_delete_attr) int MPI_Comm_delete_attr(MPI_Comm comm, int key);
PAMIR_MPI(MPI_Attr_get) int MPI_Attr_get(MPI_Comm comm, int key, void *value, int *flag);
PAMIR_MPI(MPI_Attr_put) int MPI_Attr_put(MPI_Comm comm, int key, void *value);
PAMIR_MPI(MPI_Attr_delete) int MPI_Attr_delete(MPI_Comm comm, int key);
PAMIR_MPI(MPI_Keyval_create)
int MPI_Keyval_create(MPI_Copy_function *copy, MPI_Delete_function *remove, int *key, void *state);
PAMIR_MPI(MPI_Keyval_free) int MPI_Keyval_free(int *key);
PAMIR_MPI(MPI_Type_create_keyval)
int MPI_Type_create_keyval(MPI_Type_copy_attr_function *copy, MPI_Type_delete_attr_function *remove, int *key,
                           void *state);
PAMIR_MPI(MPI_Type_free_keyval) int MPI_Type_free_keyval(int *key);
PAMIR_MPI(MPI_Type_set_attr) int MPI_Type_set_attr(MPI_Datatype type, int key, void *value);
PAMIR_MPI(MPI_Type_get_attr) int MPI_Type_get_attr(MPI_Datatype type, int key, void *value, int *flag);
PAMIR_MPI(MPI_Type_delete_attr) int MPI_Type_delete_attr(MPI_Datatype type, int key);
PAMIR_MPI(MPI_Group_size) int MPI_Group_size(MPI_Group group, int *size);
PAMIR_MPI(MPI_Group_rank) int MPI_Group_rank(MPI_Group group, int *rank);
PAMIR_MPI(MPI_Group_incl) int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group *made);
PAMIR_MPI(MPI_Group_excl) int MPI_Group_excl(MPI_Group group, int count, const int ranks[], MPI_Group *made);
PAMIR_MPI(MPI_Group_range_incl) int MPI_Group_range_incl(MPI_Group group, int count, int ranges[][3], MPI_Group *made);
PAMIR_MPI(MPI_Group_range_excl) int MPI_Group_range_excl(MPI_Group group, int count, int ranges[][3], MPI_Group *made);
PAMIR_MPI(MPI_Group_union) int MPI_Group_union(MPI_Group one, MPI_Group other, MPI_Group *made);
PAMIR_MPI(MPI_Group_intersection) int MPI_Group_intersection(MPI_Group one, MPI_Group other, MPI_Group *made);
PAMIR_MPI(MPI_Group_difference) int MPI_Group_difference(MPI_Group one, MPI_Group other, MPI_Group *made);
PAMIR_MPI(MPI_Group_compare) int MPI_Group_compare(MPI_Group one, MPI_Group other, int *result);
PAMIR_MPI(MPI_Group_translate_ranks)
int MPI_Group_translate_ranks(MPI_Group one, int count, const int ranks[], MPI_Group other, int other_ranks[]);
PAMIR_MPI(MPI_Group_free) int MPI_Group_free(MPI_Group *group);
/* Topologies (src/c/mpi/topology/). */
PAMIR_MPI(MPI_Topo_test) int MPI_Topo_test(MPI_Comm comm, int *kind);
PAMIR_MPI(MPI_Cart_create)
int MPI_Cart_create(MPI_Comm comm, int dims_count, const int dims[], const int periods[], int reorder,
                    MPI_Comm *made);
PAMIR_MPI(MPI_Cart_sub) int MPI_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm *made);
PAMIR_MPI(MPI_Cart_map)
int MPI_Cart_map(MPI_Comm comm, int dims_count, const int dims[], const int periods[], int *rank);
PAMIR_MPI(MPI_Cart_coords) int MPI_Cart_coords(MPI_Comm comm, int rank, int most, int coords[]);
PAMIR_MPI(MPI_Cart_rank) int MPI_Cart_rank(MPI_Comm comm, const int coords[], int *rank);
PAMIR_MPI(MPI_Cart_shift) int MPI_Cart_shift(MPI_Comm comm, int dim, int steps, int *from, int *to);
PAMIR_MPI(MPI_Cart_get) int MPI_Cart_get(MPI_Comm comm, int most, int dims[], int periods[], int coords[]);
PAMIR_MPI(MPI_Cartdim_get) int MPI_Cartdim_get(MPI_Comm comm, int *dims_count);
PAMIR_MPI(MPI_Dims_create) int MPI_Dims_create(int ranks, int dims_count, int dims[]);
PAMIR_MPI(MPI_Graph_create)
int MPI_Graph_create(MPI_Comm comm, int ranks, const int index[], const int edges[], int reorder, MPI_Comm *made);
PAMIR_MPI(MPI_Graph_map) int MPI_Graph_map(MPI_Comm comm, int ranks, const int index[], const int edges[], int *rank);
PAMIR_MPI(MPI_Graphdims_get) int MPI_Graphdims_get(MPI_Comm comm, int *ranks, int *edges_count);
PAMIR_MPI(MPI_Graph_get) int MPI_Graph_get(MPI_Comm comm, int most_index, int most_edges, int index[], int edges[]);
PAMIR_MPI(MPI_Graph_neighbors_count) int MPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *count);
PAMIR_MPI(MPI_Graph_neighbors) int MPI_Graph_neighbors(MPI_Comm comm, int rank, int most, int neighbors[]);
PAMIR_MPI(MPI_Dist_graph_create)
int MPI_Dist_graph_create(MPI_Comm comm, int count, const int sources[], const int degrees[],
                          const int destinations[], const int weights[], MPI_Info info, int reorder, MPI_Comm *made);
PAMIR_MPI(MPI_Dist_graph_create_adjacent)
int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int sources_count, const int sources[], const int source_weights[],
                                   int destinations_count, const int destinations[], const int destination_weights[],
                                   MPI_Info info, int reorder, MPI_Comm *made);
PAMIR_MPI(MPI_Dist_graph_neighbors_count)
int MPI_Dist_graph_neighbors_count(MPI_Comm comm, int *sources, int *destinations, int *is_weighted);
PAMIR_MPI(MPI_Dist_graph_neighbors)
int MPI_Dist_graph_neighbors(MPI_Comm comm, int most_sources, int sources[], int source_weights[],
                             int most_destinations, int destinations[], int destination_weights[]);
PAMIR_MPI(MPI_Neighbor_allgather)
int MPI_Neighbor_allgather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                           MPI_Datatype type, MPI_Comm comm);
PAMIR_MPI(MPI_Ineighbor_allgather)
int MPI_Ineighbor_allgather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                            MPI_Datatype type, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Neighbor_allgather_init)
int MPI_Neighbor_allgather_init(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                                MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Neighbor_allgatherv)
int MPI_Neighbor_allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                            const int counts[], const int places[], MPI_Datatype type, MPI_Comm comm);
PAMIR_MPI(MPI_Ineighbor_allgatherv)
int MPI_Ineighbor_allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                             const int counts[], const int places[], MPI_Datatype type, MPI_Comm comm,
                             MPI_Request *request);
PAMIR_MPI(MPI_Neighbor_allgatherv_init)
int MPI_Neighbor_allgatherv_init(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                                 const int counts[], const int places[], MPI_Datatype type, MPI_Comm comm,
                                 MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Neighbor_alltoall)
int MPI_Neighbor_alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                          MPI_Datatype type, MPI_Comm comm);
PAMIR_MPI(MPI_Ineighbor_alltoall)
int MPI_Ineighbor_alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                           MPI_Datatype type, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Neighbor_alltoall_init)
int MPI_Neighbor_alltoall_init(const void *send, int send_count, MPI_Datatype send_type, void *receive, int count,
                               MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Neighbor_alltoallv)
int MPI_Neighbor_alltoallv(const void *send, const int send_counts[], const int send_places[],
                           MPI_Datatype send_type, void *receive, const int counts[], const int places[],
                           MPI_Datatype type, MPI_Comm comm);
PAMIR_MPI(MPI_Ineighbor_alltoallv)
int MPI_Ineighbor_alltoallv(const void *send, const int send_counts[], const int send_places[],
                            MPI_Datatype send_type, void *receive, const int counts[], const int places[],
                            MPI_Datatype type, MPI_Comm comm, MPI_Request *request);
PAMIR_MPI(MPI_Neighbor_alltoallv_init)
int MPI_Neighbor_alltoallv_init(const void *send, const int send_counts[], const int send_places[],
                                MPI_Datatype send_type, void *receive, const int counts[], const int places[],
                                MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Neighbor_alltoallw)
int MPI_Neighbor_alltoallw(const void *send, const int send_counts[], const MPI_Aint send_places[],
                           const MPI_Datatype send_types[], void *receive, const int counts[],
                           const MPI_Aint places[], const MPI_Datatype types[], MPI_Comm comm);
PAMIR_MPI(MPI_Ineighbor_alltoallw)
int MPI_Ineighbor_alltoallw(const void *send, const int send_counts[], const MPI_Aint send_places[],
                            const MPI_Datatype send_types[], void *receive, const int counts[],
                            const MPI_Aint places[], const MPI_Datatype types[], MPI_Comm comm,
                            MPI_Request *request);
PAMIR_MPI(MPI_Neighbor_alltoallw_init)
int MPI_Neighbor_alltoallw_init(const void *send, const int send_counts[], const MPI_Aint send_places[],
                                const MPI_Datatype send_types[], void *receive, const int counts[],
                                const MPI_Aint places[], const MPI_Datatype types[], MPI_Comm comm, MPI_Info info,
                                MPI_Request *request);
/* Ends of ranks (src/c/mpi/failures/). */
PAMIR_MPI(MPIX_Comm_revoke) int MPIX_Comm_revoke(MPI_Comm comm);
PAMIR_MPI(MPIX_Comm_is_revoked) int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
PAMIR_MPI(MPIX_Comm_shrink) int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *made);
PAMIR_MPI(MPIX_Comm_agree) int MPIX_Comm_agree(MPI_Comm comm, int *flag);
PAMIR_MPI(MPIX_Comm_get_failed) int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *group);
PAMIR_MPI(MPIX_Comm_ack_failed) int MPIX_Comm_ack_failed(MPI_Comm comm, int count, int *acknowledged);
PAMIR_MPI(MPIX_Comm_failure_ack) int MPIX_Comm_failure_ack(MPI_Comm comm);
PAMIR_MPI(MPIX_Comm_failure_get_acked) int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *group);
/* Windows (src/c/mpi/windows/). */
PAMIR_MPI(MPI_Win_create)
int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win);
PAMIR_MPI(MPI_Win_allocate)
int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
PAMIR_MPI(MPI_Win_allocate_shared)
int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
PAMIR_MPI(MPI_Win_shared_query) int MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *unit, void *base);
PAMIR_MPI(MPI_Win_create_dynamic) int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win);
PAMIR_MPI(MPI_Win_attach) int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint size);
PAMIR_MPI(MPI_Win_detach) int MPI_Win_detach(MPI_Win win, const void *base);
PAMIR_MPI(MPI_Win_free) int MPI_Win_free(MPI_Win *win);
PAMIR_MPI(MPI_Win_get_group) int MPI_Win_get_group(MPI_Win win, MPI_Group *group);
PAMIR_MPI(MPI_Win_set_name) int MPI_Win_set_name(MPI_Win win, const char *name);
PAMIR_MPI(MPI_Win_get_name) int MPI_Win_get_name(MPI_Win win, char *name, int *length);
PAMIR_MPI(MPI_Win_set_info) int MPI_Win_set_info(MPI_Win win, MPI_Info info);
PAMIR_MPI(MPI_Win_get_info) int MPI_Win_get_info(MPI_Win win, MPI_Info *info);
PAMIR_MPI(MPI_Win_set_errhandler) int MPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler handler);
PAMIR_MPI(MPI_Win_get_errhandler) int MPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *handler);
PAMIR_MPI(MPI_Win_create_errhandler)
int MPI_Win_create_errhandler(MPI_Win_errhandler_function *call, MPI_Errhandler *handler);
PAMIR_MPI(MPI_Win_call_errhandler) int MPI_Win_call_errhandler(MPI_Win win, int code);
PAMIR_MPI(MPI_Win_create_keyval)
int MPI_Win_create_keyval(MPI_Win_copy_attr_function *copy, MPI_Win_delete_attr_function *remove, int *key,
                          void *state);
PAMIR_MPI(MPI_Win_free_keyval) int MPI_Win_free_keyval(int *key);
PAMIR_MPI(MPI_Win_set_attr) int MPI_Win_set_attr(MPI_Win win, int key, void *value);
PAMIR_MPI(MPI_Win_get_attr) int MPI_Win_get_attr(MPI_Win win, int key, void *value, int *flag);
PAMIR_MPI(MPI_Win_delete_attr) int MPI_Win_delete_attr(MPI_Win win, int key);
PAMIR_MPI(MPI_Win_fence) int MPI_Win_fence(int assertions, MPI_Win win);
PAMIR_MPI(MPI_Win_start) int MPI_Win_start(MPI_Group group, int assertions, MPI_Win win);
PAMIR_MPI(MPI_Win_complete) int MPI_Win_complete(MPI_Win win);
PAMIR_MPI(MPI_Win_post) int MPI_Win_post(MPI_Group group, int assertions, MPI_Win win);
PAMIR_MPI(MPI_Win_wait) int MPI_Win_wait(MPI_Win win);
PAMIR_MPI(MPI_Win_test) int MPI_Win_test(MPI_Win win, int *flag);
PAMIR_MPI(MPI_Win_lock) int MPI_Win_lock(int kind, int rank, int assertions, MPI_Win win);
PAMIR_MPI(MPI_Win_unlock) int MPI_Win_unlock(int rank, MPI_Win win);
PAMIR_MPI(MPI_Win_lock_all) int MPI_Win_lock_all(int assertions, MPI_Win win);
PAMIR_MPI(MPI_Win_unlock_all) int MPI_Win_unlock_all(MPI_Win win);
PAMIR_MPI(MPI_Win_flush) int MPI_Win_flush(int rank, MPI_Win win);
PAMIR_MPI(MPI_Win_flush_all) int MPI_Win_flush_all(MPI_Win win);
PAMIR_MPI(MPI_Win_flush_local) int MPI_Win_flush_local(int rank, MPI_Win win);
PAMIR_MPI(MPI_Win_flush_local_all) int MPI_Win_flush_local_all(MPI_Win win);
PAMIR_MPI(MPI_Win_sync) int MPI_Win_sync(MPI_Win win);
PAMIR_MPI(MPI_Put)
int MPI_Put(const void *from, int count, MPI_Datatype type, int rank, MPI_Aint place, int target_count,
            MPI_Datatype target_type, MPI_Win win);
PAMIR_MPI(MPI_Get)
int MPI_Get(void *to, int count, MPI_Datatype type, int rank, MPI_Aint place, int target_count,
            MPI_Datatype target_type, MPI_Win win);
PAMIR_MPI(MPI_Accumulate)
int MPI_Accumulate(const void *from, int count, MPI_Datatype type, int rank, MPI_Aint place, int target_count,
                   MPI_Datatype target_type, MPI_Op op, MPI_Win win);
PAMIR_MPI(MPI_Get_accumulate)
int MPI_Get_accumulate(const void *from, int count, MPI_Datatype type, void *result, int result_count,
                       MPI_Datatype result_type, int rank, MPI_Aint place, int target_count, MPI_Datatype target_type,
                       MPI_Op op, MPI_Win win);
PAMIR_MPI(MPI_Fetch_and_op)
int MPI_Fetch_and_op(const void *from, void *result, MPI_Datatype type, int rank, MPI_Aint place, MPI_Op op,
                     MPI_Win win);
PAMIR_MPI(MPI_Compare_and_swap)
int MPI_Compare_and_swap(const void *from, const void *compare, void *result, MPI_Datatype type, int rank,
                         MPI_Aint place, MPI_Win win);
PAMIR_MPI(MPI_Rput)
int MPI_Rput(const void *from, int count, MPI_Datatype type, int rank, MPI_Aint place, int target_count,
             MPI_Datatype target_type, MPI_Win win, MPI_Request *request);
PAMIR_MPI(MPI_Rget)
int MPI_Rget(void *to, int count, MPI_Datatype type, int rank, MPI_Aint place, int target_count,
             MPI_Datatype target_type, MPI_Win win, MPI_Request *request);
PAMIR_MPI(MPI_Raccumulate)
int MPI_Raccumulate(const void *from, int count, MPI_Datatype type, int rank, MPI_Aint place, int target_count,
                    MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request);
PAMIR_MPI(MPI_Rget_accumulate)
int MPI_Rget_accumulate(const void *from, int count, MPI_Datatype type, void *result, int result_count,
                        MPI_Datatype result_type, int rank, MPI_Aint place, int target_count,
                        MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request);
/* Datatypes (src/c/mpi/type-calls.ts). */
PAMIR_MPI(MPI_Type_contiguous) int MPI_Type_contiguous(int count, MPI_Datatype type, MPI_Datatype *made);
PAMIR_MPI(MPI_Type_vector)
int MPI_Type_vector(int count, int length, int stride, MPI_Datatype type, MPI_Datatype *made);
PAMIR_MPI(MPI_Type_create_hvector)
int MPI_Type_create_hvector(int count, int length, MPI_Aint stride, MPI_Datatype type, MPI_Datatype *made);
PAMIR_MPI(MPI_Type_indexed)
int MPI_Type_indexed(int count, const int lengths[], const int places[], MPI_Datatype type, MPI_Datatype *made);
PAMIR_MPI(MPI_Type_create_hindexed)
int MPI_Type_create_hindexed(int count, const int lengths[], const MPI_Aint places[], MPI_Datatype type,
                             MPI_Datatype *made);
PAMIR_MPI(MPI_Type_create_indexed_block)
int MPI_Type_create_indexed_block(int count, int length, const int places[], MPI_Datatype type, MPI_Datatype *made);
PAMIR_MPI(MPI_Type_create_hindexed_block)
int MPI_Type_create_hindexed_block(int count, int length, const MPI_Aint places[], MPI_Datatype type,
                                   MPI_Datatype *made);
PAMIR_MPI(MPI_Type_create_struct)
int MPI_Type_create_struct(int count, const int lengths[], const MPI_Aint places[], const MPI_Datatype types[],
                           MPI_Datatype *made);
PAMIR_MPI(MPI_Type_create_subarray)
int MPI_Type_create_subarray(int dims, const int sizes[], const int subsizes[], const int starts[], int order,
                             MPI_Datatype type, MPI_Datatype *made);
PAMIR_MPI(MPI_Type_create_darray)
int MPI_Type_create_darray(int ranks, int rank, int dims, const int sizes[], const int distributions[],
                           const int arguments[], const int grid[], int order, MPI_Datatype type,
                           MPI_Datatype *made);
PAMIR_MPI(MPI_Type_create_resized)
int MPI_Type_create_resized(MPI_Datatype type, MPI_Aint lower_bound, MPI_Aint extent, MPI_Datatype *made);
PAMIR_MPI(MPI_Type_dup) int MPI_Type_dup(MPI_Datatype type, MPI_Datatype *made);
PAMIR_MPI(MPI_Type_commit) int MPI_Type_commit(MPI_Datatype *type);
PAMIR_MPI(MPI_Type_free) int MPI_Type_free(MPI_Datatype *type);
PAMIR_MPI(MPI_Type_size) int MPI_Type_size(MPI_Datatype type, int *size);
PAMIR_MPI(MPI_Type_get_extent) int MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lower_bound, MPI_Aint *extent);
PAMIR_MPI(MPI_Type_get_true_extent)
int MPI_Type_get_true_extent(MPI_Datatype type, MPI_Aint *lower_bound, MPI_Aint *extent);
PAMIR_MPI(MPI_Type_get_envelope)
int MPI_Type_get_envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner);
PAMIR_MPI(MPI_Type_get_contents)
int MPI_Type_get_contents(MPI_Datatype type, int most_integers, int most_addresses, int most_types, int integers[],
                          MPI_Aint addresses[], MPI_Datatype types[]);
PAMIR_MPI(MPI_Type_set_name) int MPI_Type_set_name(MPI_Datatype type, const char *name);
PAMIR_MPI(MPI_Type_get_name) int MPI_Type_get_name(MPI_Datatype type, char *name, int *length);
PAMIR_MPI(MPI_Type_size_x) int MPI_Type_size_x(MPI_Datatype type, MPI_Count *size);
PAMIR_MPI(MPI_Type_get_extent_x)
int MPI_Type_get_extent_x(MPI_Datatype type, MPI_Count *lower_bound, MPI_Count *extent);
PAMIR_MPI(MPI_Get_address) int MPI_Get_address(const void *place, MPI_Aint *address);
PAMIR_MPI(MPI_Aint_add) MPI_Aint MPI_Aint_add(MPI_Aint base, MPI_Aint shift);
PAMIR_MPI(MPI_Aint_diff) MPI_Aint MPI_Aint_diff(MPI_Aint one, MPI_Aint other);
PAMIR_MPI(MPI_Pack)
int MPI_Pack(const void *from, int count, MPI_Datatype type, void *to, int size, int *position, MPI_Comm comm);
PAMIR_MPI(MPI_Unpack)
int MPI_Unpack(const void *from, int size, int *position, void *to, int count, MPI_Datatype type, MPI_Comm comm);
PAMIR_MPI(MPI_Pack_size) int MPI_Pack_size(int count, MPI_Datatype type, MPI_Comm comm, int *size);
PAMIR_MPI(MPI_Pack_external)
int MPI_Pack_external(const char representation[], const void *from, int count, MPI_Datatype type, void *to,
                      MPI_Aint size, MPI_Aint *position);
PAMIR_MPI(MPI_Unpack_external)
int MPI_Unpack_external(const char representation[], const void *from, MPI_Aint size, MPI_Aint *position, void *to,
                        int count, MPI_Datatype type);
PAMIR_MPI(MPI_Pack_external_size)
int MPI_Pack_external_size(const char representation[], int count, MPI_Datatype type, MPI_Aint *size);
PAMIR_MPI(MPI_Type_match_size) int MPI_Type_match_size(int type_class, int size, MPI_Datatype *type);
/* What is declared for programs that name it: a call ends the program, with an error that names the function. */
/* Files. */
PAMIR_MPI(MPI_File_open) int MPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file);
PAMIR_MPI(MPI_File_close) int MPI_File_close(MPI_File *file);
PAMIR_MPI(MPI_File_delete) int MPI_File_delete(const char *name, MPI_Info info);
PAMIR_MPI(MPI_File_set_size) int MPI_File_set_size(MPI_File file, MPI_Offset size);
PAMIR_MPI(MPI_File_preallocate) int MPI_File_preallocate(MPI_File file, MPI_Offset size);
PAMIR_MPI(MPI_File_get_size) int MPI_File_get_size(MPI_File file, MPI_Offset *size);
PAMIR_MPI(MPI_File_get_group) int MPI_File_get_group(MPI_File file, MPI_Group *group);
PAMIR_MPI(MPI_File_get_amode) int MPI_File_get_amode(MPI_File file, int *mode);
PAMIR_MPI(MPI_File_set_info) int MPI_File_set_info(MPI_File file, MPI_Info info);
PAMIR_MPI(MPI_File_get_info) int MPI_File_get_info(MPI_File file, MPI_Info *info);
PAMIR_MPI(MPI_File_set_view)
int MPI_File_set_view(MPI_File file, MPI_Offset place, MPI_Datatype element, MPI_Datatype type,
                      const char *representation, MPI_Info info);
PAMIR_MPI(MPI_File_get_view)
int MPI_File_get_view(MPI_File file, MPI_Offset *place, MPI_Datatype *element, MPI_Datatype *type,
                      char *representation);
PAMIR_MPI(MPI_File_read_at)
int MPI_File_read_at(MPI_File file, MPI_Offset place, void *buffer, int count, MPI_Datatype type,
                     MPI_Status *status);
PAMIR_MPI(MPI_File_iread_at)
int MPI_File_iread_at(MPI_File file, MPI_Offset place, void *buffer, int count, MPI_Datatype type,
                      MPI_Request *request);
PAMIR_MPI(MPI_File_read_at_all)
int MPI_File_read_at_all(MPI_File file, MPI_Offset place, void *buffer, int count, MPI_Datatype type,
                         MPI_Status *status);
PAMIR_MPI(MPI_File_iread_at_all)
int MPI_File_iread_at_all(MPI_File file, MPI_Offset place, void *buffer, int count, MPI_Datatype type,
                          MPI_Request *request);
PAMIR_MPI(MPI_File_write_at)
int MPI_File_write_at(MPI_File file, MPI_Offset place, const void *buffer, int count, MPI_Datatype type,
                      MPI_Status *status);
PAMIR_MPI(MPI_File_iwrite_at)
int MPI_File_iwrite_at(MPI_File file, MPI_Offset place, const void *buffer, int count, MPI_Datatype type,
                       MPI_Request *request);
PAMIR_MPI(MPI_File_write_at_all)
int MPI_File_write_at_all(MPI_File file, MPI_Offset place, const void *buffer, int count, MPI_Datatype type,
                          MPI_Status *status);
PAMIR_MPI(MPI_File_iwrite_at_all)
int MPI_File_iwrite_at_all(MPI_File file, MPI_Offset place, const void *buffer, int count, MPI_Datatype type,
                           MPI_Request *request);
PAMIR_MPI(MPI_File_read)
int MPI_File_read(MPI_File file, void *buffer, int count, MPI_Datatype type, MPI_Status *status);
PAMIR_MPI(MPI_File_iread)
int MPI_File_iread(MPI_File file, void *buffer, int count, MPI_Datatype type, MPI_Request *request);
PAMIR_MPI(MPI_File_read_all)
int MPI_File_read_all(MPI_File file, void *buffer, int count, MPI_Datatype type, MPI_Status *status);
PAMIR_MPI(MPI_File_iread_all)
int MPI_File_iread_all(MPI_File file, void *buffer, int count, MPI_Datatype type, MPI_Request *request);
PAMIR_MPI(MPI_File_write)
int MPI_File_write(MPI_File file, const void *buffer, int count, MPI_Datatype type, MPI_Status *status);
PAMIR_MPI(MPI_File_iwrite)
int MPI_File_iwrite(MPI_File file, const void *buffer, int count, MPI_Datatype type, MPI_Request *request);
PAMIR_MPI(MPI_File_write_all)
int MPI_File_write_all(MPI_File file, const void *buffer, int count, MPI_Datatype type, MPI_Status *status);
PAMIR_MPI(MPI_File_iwrite_all)
int MPI_File_iwrite_all(MPI_File file, const void *buffer, int count, MPI_Datatype type, MPI_Request *request);
PAMIR_MPI(MPI_File_read_shared)
int MPI_File_read_shared(MPI_File file, void *buffer, int count, MPI_Datatype type, MPI_Status *status);
PAMIR_MPI(MPI_File_iread_shared)
int MPI_File_iread_shared(MPI_File file, void *buffer, int count, MPI_Datatype type, MPI_Request *request);
PAMIR_MPI(MPI_File_write_shared)
int MPI_File_write_shared(MPI_File file, const void *buffer, int count, MPI_Datatype type, MPI_Status *status);
PAMIR_MPI(MPI_File_iwrite_shared)
int MPI_File_iwrite_shared(MPI_File file, const void *buffer, int count, MPI_Datatype type, MPI_Request *request);
PAMIR_MPI(MPI_File_read_ordered)
int MPI_File_read_ordered(MPI_File file, void *buffer, int count, MPI_Datatype type, MPI_Status *status);
PAMIR_MPI(MPI_File_write_ordered)
int MPI_File_write_ordered(MPI_File file, const void *buffer, int count, MPI_Datatype type, MPI_Status *status);
PAMIR_MPI(MPI_File_read_at_all_begin)
int MPI_File_read_at_all_begin(MPI_File file, MPI_Offset place, void *buffer, int count, MPI_Datatype type);
PAMIR_MPI(MPI_File_read_at_all_end) int MPI_File_read_at_all_end(MPI_File file, void *buffer, MPI_Status *status);
PAMIR_MPI(MPI_File_write_at_all_begin)
int MPI_File_write_at_all_begin(MPI_File file, MPI_Offset place, const void *buffer, int count, MPI_Datatype type);
PAMIR_MPI(MPI_File_write_at_all_end)
int MPI_File_write_at_all_end(MPI_File file, const void *buffer, MPI_Status *status);
PAMIR_MPI(MPI_File_read_all_begin)
int MPI_File_read_all_begin(MPI_File file, void *buffer, int count, MPI_Datatype type);
PAMIR_MPI(MPI_File_read_all_end) int MPI_File_read_all_end(MPI_File file, void *buffer, MPI_Status *status);
PAMIR_MPI(MPI_File_write_all_begin)
int MPI_File_write_all_begin(MPI_File file, const void *buffer, int count, MPI_Datatype type);
PAMIR_MPI(MPI_File_write_all_end) int MPI_File_write_all_end(MPI_File file, const void *buffer, MPI_Status *status);
PAMIR_MPI(MPI_File_read_ordered_begin)
int MPI_File_read_ordered_begin(MPI_File file, void *buffer, int count, MPI_Datatype type);
PAMIR_MPI(MPI_File_read_ordered_end) int MPI_File_read_ordered_end(MPI_File file, void *buffer, MPI_Status *status);
PAMIR_MPI(MPI_File_write_ordered_begin)
int MPI_File_write_ordered_begin(MPI_File file, const void *buffer, int count, MPI_Datatype type);
PAMIR_MPI(MPI_File_write_ordered_end)
int MPI_File_write_ordered_end(MPI_File file, const void *buffer, MPI_Status *status);
PAMIR_MPI(MPI_File_seek) int MPI_File_seek(MPI_File file, MPI_Offset place, int whence);
PAMIR_MPI(MPI_File_get_position) int MPI_File_get_position(MPI_File file, MPI_Offset *place);
PAMIR_MPI(MPI_File_get_byte_offset) int MPI_File_get_byte_offset(MPI_File file, MPI_Offset place, MPI_Offset *bytes);
PAMIR_MPI(MPI_File_seek_shared) int MPI_File_seek_shared(MPI_File file, MPI_Offset place, int whence);
PAMIR_MPI(MPI_File_get_position_shared) int MPI_File_get_position_shared(MPI_File file, MPI_Offset *place);
PAMIR_MPI(MPI_File_get_type_extent) int MPI_File_get_type_extent(MPI_File file, MPI_Datatype type, MPI_Aint *extent);
PAMIR_MPI(MPI_File_set_atomicity) int MPI_File_set_atomicity(MPI_File file, int flag);
PAMIR_MPI(MPI_File_get_atomicity) int MPI_File_get_atomicity(MPI_File file, int *flag);
PAMIR_MPI(MPI_File_sync) int MPI_File_sync(MPI_File file);
PAMIR_MPI(MPI_File_create_errhandler)
int MPI_File_create_errhandler(MPI_File_errhandler_function *call, MPI_Errhandler *handler);
PAMIR_MPI(MPI_File_set_errhandler) int MPI_File_set_errhandler(MPI_File file, MPI_Errhandler handler);
PAMIR_MPI(MPI_File_get_errhandler) int MPI_File_get_errhandler(MPI_File file, MPI_Errhandler *handler);
PAMIR_MPI(MPI_File_call_errhandler) int MPI_File_call_errhandler(MPI_File file, int code);
PAMIR_MPI(MPI_Register_datarep)
int MPI_Register_datarep(const char *name, MPI_Datarep_conversion_function *read,
                         MPI_Datarep_conversion_function *write, MPI_Datarep_extent_function *extent, void *state);
/* Communicators of two groups, and programs that start or find others. */
PAMIR_MPI(MPI_Intercomm_create)
int MPI_Intercomm_create(MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader, int tag,
                         MPI_Comm *made);
PAMIR_MPI(MPI_Intercomm_merge) int MPI_Intercomm_merge(MPI_Comm comm, int is_high, MPI_Comm *made);
PAMIR_MPI(MPI_Comm_remote_size) int MPI_Comm_remote_size(MPI_Comm comm, int *size);
PAMIR_MPI(MPI_Comm_remote_group) int MPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group);
PAMIR_MPI(MPI_Comm_spawn)
int MPI_Comm_spawn(const char *command, char *argv[], int count, MPI_Info info, int root, MPI_Comm comm,
                   MPI_Comm *made, int codes[]);
PAMIR_MPI(MPI_Comm_spawn_multiple)
int MPI_Comm_spawn_multiple(int programs, char *commands[], char **argvs[], const int counts[],
                            const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *made, int codes[]);
PAMIR_MPI(MPI_Comm_accept)
int MPI_Comm_accept(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made);
PAMIR_MPI(MPI_Comm_connect)
int MPI_Comm_connect(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made);
PAMIR_MPI(MPI_Comm_join) int MPI_Comm_join(int socket, MPI_Comm *made);
PAMIR_MPI(MPI_Open_port) int MPI_Open_port(MPI_Info info, char *port);
PAMIR_MPI(MPI_Close_port) int MPI_Close_port(const char *port);
PAMIR_MPI(MPI_Publish_name) int MPI_Publish_name(const char *service, MPI_Info info, const char *port);
PAMIR_MPI(MPI_Unpublish_name) int MPI_Unpublish_name(const char *service, MPI_Info info, const char *port);
PAMIR_MPI(MPI_Lookup_name) int MPI_Lookup_name(const char *service, MPI_Info info, char *port);
/* Messages in parts. */
PAMIR_MPI(MPI_Psend_init)
int MPI_Psend_init(const void *buffer, int parts, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Precv_init)
int MPI_Precv_init(void *buffer, int parts, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request);
PAMIR_MPI(MPI_Pready) int MPI_Pready(int part, MPI_Request request);
PAMIR_MPI(MPI_Pready_range) int MPI_Pready_range(int first, int last, MPI_Request request);
PAMIR_MPI(MPI_Pready_list) int MPI_Pready_list(int count, const int parts[], MPI_Request request);
PAMIR_MPI(MPI_Parrived) int MPI_Parrived(MPI_Request request, int part, int *flag);
/* Sessions. */
PAMIR_MPI(MPI_Session_init) int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session);
PAMIR_MPI(MPI_Session_finalize) int MPI_Session_finalize(MPI_Session *session);
PAMIR_MPI(MPI_Session_get_info) int MPI_Session_get_info(MPI_Session session, MPI_Info *info);
PAMIR_MPI(MPI_Session_get_num_psets) int MPI_Session_get_num_psets(MPI_Session session, MPI_Info info, int *count);
PAMIR_MPI(MPI_Session_get_nth_pset)
int MPI_Session_get_nth_pset(MPI_Session session, MPI_Info info, int index, int *length, char *name);
PAMIR_MPI(MPI_Session_get_pset_info)
int MPI_Session_get_pset_info(MPI_Session session, const char *name, MPI_Info *info);
PAMIR_MPI(MPI_Group_from_session_pset)
int MPI_Group_from_session_pset(MPI_Session session, const char *name, MPI_Group *group);
PAMIR_MPI(MPI_Comm_create_from_group)
int MPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler,
                               MPI_Comm *made);
/* Datatypes of Fortran. */
PAMIR_MPI(MPI_Type_create_f90_integer) int MPI_Type_create_f90_integer(int digits, MPI_Datatype *type);
PAMIR_MPI(MPI_Type_create_f90_real) int MPI_Type_create_f90_real(int digits, int range, MPI_Datatype *type);
PAMIR_MPI(MPI_Type_create_f90_complex) int MPI_Type_create_f90_complex(int digits, int range, MPI_Datatype *type);

#ifdef __cplusplus
}
#endif

#endif
