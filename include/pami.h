/*
 * PAMI for programs that run on pamir: compile with `pamir cc`, run with `pamir run -n 4 program.wasm`.
 * Names, and the order of parameters and fields, are those of IBM's PAMI as it was on Blue Gene/Q; the values of opaque constants
 * are pamir's own. Each function is an import of the program: pamir provides it (docs/c.md says what is there).
 */
#ifndef PAMIR_PAMI_H
#define PAMIR_PAMI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results. */
typedef enum {
  PAMI_NERROR = -1,
  PAMI_SUCCESS = 0,
  PAMI_ERROR = 1,
  PAMI_INVAL = 2,
  PAMI_UNIMPL = 3,
  PAMI_EAGAIN = 4,
  PAMI_ENOMEM = 5,
  PAMI_SHUTDOWN = 6,
  PAMI_CHECK_ERRNO = 7,
  PAMI_OTHER = 8,
  PAMI_RESULT_EXT = 1000
} pami_result_t;

/* Handles. An endpoint fits a message; the others mean something in their task alone. */
typedef void *pami_client_t;
typedef void *pami_context_t;
typedef void *pami_geometry_t;
typedef void *pami_type_t;
typedef size_t pami_algorithm_t;
typedef uint32_t pami_task_t;
typedef uint32_t pami_endpoint_t;

#define PAMI_CLIENT_NULL ((pami_client_t)0)
#define PAMI_CONTEXT_NULL ((pami_context_t)0)
#define PAMI_GEOMETRY_NULL ((pami_geometry_t)0)
#define PAMI_TYPE_NULL ((pami_type_t)0)
#define PAMI_ALGORITHM_NULL ((pami_algorithm_t)0)
#define PAMI_ENDPOINT_NULL ((pami_endpoint_t)-1)

/* In place of a buffer of a collective operation. */
#define PAMI_IN_PLACE ((void *)-1L)

/* Functions of the program, which run within PAMI_Context_advance(). */
typedef void (*pami_event_function)(pami_context_t context, void *cookie, pami_result_t result);
/* Runs again at the next advance while it returns PAMI_EAGAIN. */
typedef pami_result_t (*pami_work_function)(pami_context_t context, void *cookie);
/* A reduction: target = source op target; the source comes from lower ranks. */
typedef void (*pami_data_function)(void *target, void *source, size_t bytes, void *cookie);

#define PAMI_WORK_SIZE_STATIC 16
typedef uintptr_t pami_work_t[PAMI_WORK_SIZE_STATIC / sizeof(uintptr_t)];

/* Attributes. */
typedef enum {
  PAMI_CLIENT_CLOCK_MHZ = 100,
  PAMI_CLIENT_CONST_CONTEXTS = 101,
  PAMI_CLIENT_HWTHREADS_AVAILABLE = 102,
  PAMI_CLIENT_MEMREGION_SIZE = 103,
  PAMI_CLIENT_MEM_SIZE = 104,
  PAMI_CLIENT_NUM_TASKS = 105,
  PAMI_CLIENT_NUM_LOCAL_TASKS = 106,
  PAMI_CLIENT_LOCAL_TASKS = 107,
  PAMI_CLIENT_NUM_CONTEXTS = 108,
  PAMI_CLIENT_PROCESSOR_NAME = 109,
  PAMI_CLIENT_TASK_ID = 110,
  PAMI_CLIENT_WTIMEBASE_MHZ = 111,
  PAMI_CLIENT_WTICK = 112,
  PAMI_CLIENT_NONCONTIG = 113,
  PAMI_CLIENT_MEMORY_OPTIMIZE = 114,
  PAMI_CONTEXT_DISPATCH_ID_MAX = 200,
  PAMI_DISPATCH_RECV_IMMEDIATE_MAX = 300,
  PAMI_DISPATCH_SEND_IMMEDIATE_MAX = 301,
  PAMI_DISPATCH_ATOM_SIZE_MAX = 302,
  PAMI_GEOMETRY_OPTIMIZE = 400,
  PAMI_GEOMETRY_NONCONTIG = 401,
  PAMI_GEOMETRY_MEMORY_OPTIMIZE = 402,
  PAMI_TYPE_DATA_SIZE = 500,
  PAMI_TYPE_DATA_EXTENT = 501,
  PAMI_TYPE_ATOM_SIZE = 502,
  PAMI_ATTRIBUTE_NAME_EXT = 1000
} pami_attribute_name_t;

typedef union {
  size_t intval;
  double doubleval;
  const char *chararray;
  const size_t *intarray;
} pami_attribute_value_t;

typedef struct {
  pami_attribute_name_t name;
  pami_attribute_value_t value;
} pami_configuration_t;

/* Hints. Those of a dispatch id are honored, or PAMI_Dispatch_set() fails; those of a send change nothing. */
typedef enum { PAMI_HINT_DEFAULT = 0, PAMI_HINT_ENABLE = 1, PAMI_HINT_DISABLE = 2, PAMI_HINT_INVALID = 3 } pami_hint_t;

typedef struct {
  unsigned multicontext : 2;
  unsigned long_header : 2;
  unsigned recv_contiguous : 2;
  unsigned recv_copy : 2;
  unsigned recv_immediate : 2;
  unsigned consistency : 2;
  unsigned buffer_registered : 2;
  unsigned remote_async_progress : 2;
  unsigned use_rdma : 2;
  unsigned use_shmem : 2;
  unsigned queue_immediate : 2;
} pami_dispatch_hint_t;

typedef struct {
  unsigned reserved0 : 12;
  unsigned buffer_registered : 2;
  unsigned remote_async_progress : 2;
  unsigned use_rdma : 2;
  unsigned use_shmem : 2;
  unsigned reserved1 : 2;
} pami_send_hint_t;

typedef struct {
  unsigned multicontext : 2;
  unsigned reserved0 : 20;
} pami_collective_hint_t;

/* Active messages. */
typedef struct {
  struct iovec header;
  struct iovec data;
  size_t dispatch;
  pami_send_hint_t hints;
  pami_endpoint_t dest;
} pami_send_immediate_t;

typedef struct {
  void *cookie;
  pami_event_function local_fn;
  pami_event_function remote_fn;
} pami_send_event_t;

typedef struct {
  pami_send_immediate_t send;
  pami_send_event_t events;
} pami_send_t;

typedef struct {
  pami_send_immediate_t send;
  pami_send_event_t events;
  struct {
    pami_type_t type;
    size_t offset;
    pami_data_function data_fn;
    void *data_cookie;
  } typed;
} pami_send_typed_t;

/* Where a handler wants the payload. All fields are 0 at first. */
typedef struct {
  void *cookie;
  pami_event_function local_fn;
  void *addr;
  pami_type_t type;
  size_t offset;
  pami_data_function data_fn;
  void *data_cookie;
} pami_recv_t;

/* With the payload at `data`, which is valid until the handler returns; or `data` is NULL, and the handler fills in `receive`. */
typedef void (*pami_dispatch_p2p_function)(pami_context_t context, void *cookie, const void *header, size_t header_size,
                                           const void *data, size_t data_size, pami_endpoint_t origin,
                                           pami_recv_t *receive);
typedef void (*pami_dispatch_ambroadcast_function)(pami_context_t context, void *cookie, const void *header,
                                                   size_t header_size, const void *data, size_t data_size,
                                                   pami_endpoint_t origin, pami_geometry_t geometry,
                                                   pami_recv_t *receive);

typedef union {
  pami_dispatch_p2p_function p2p;
  pami_dispatch_ambroadcast_function ambroadcast;
} pami_dispatch_callback_function;

/* One-sided operations. */
typedef struct {
  pami_endpoint_t dest;
  pami_send_hint_t hints;
  size_t bytes;
  void *cookie;
  pami_event_function done_fn;
} pami_rma_t;

typedef struct {
  void *local;
  void *remote;
} pami_rma_addr_t;

typedef struct {
  pami_event_function rdone_fn;
} pami_rma_put_t;

typedef struct {
  pami_rma_t rma;
  pami_rma_addr_t addr;
  pami_rma_put_t put;
} pami_put_simple_t;

typedef struct {
  pami_rma_t rma;
  pami_rma_addr_t addr;
} pami_get_simple_t;

/* Goes to other tasks in a message, and names the memory there. */
#define PAMI_CLIENT_MEMREGION_SIZE_STATIC 16
typedef uintptr_t pami_memregion_t[PAMI_CLIENT_MEMREGION_SIZE_STATIC / sizeof(uintptr_t)];

typedef struct {
  pami_memregion_t *mr;
  size_t offset;
} pami_rma_mr_t;

typedef struct {
  pami_rma_mr_t local;
  pami_rma_mr_t remote;
} pami_rdma_t;

typedef struct {
  pami_rma_t rma;
  pami_rdma_t rdma;
  pami_rma_put_t put;
} pami_rput_simple_t;

typedef struct {
  pami_rma_t rma;
  pami_rdma_t rdma;
} pami_rget_simple_t;

typedef enum {
  PAMI_ATOMIC_FETCH = 1,
  PAMI_ATOMIC_COMPARE = 2,
  PAMI_ATOMIC_SET = 4,
  PAMI_ATOMIC_ADD = 8,
  PAMI_ATOMIC_OR = 12,
  PAMI_ATOMIC_AND = 16,
  PAMI_ATOMIC_XOR = 20,
  PAMI_ATOMIC_FETCH_SET = PAMI_ATOMIC_FETCH | PAMI_ATOMIC_SET,
  PAMI_ATOMIC_FETCH_ADD = PAMI_ATOMIC_FETCH | PAMI_ATOMIC_ADD,
  PAMI_ATOMIC_FETCH_OR = PAMI_ATOMIC_FETCH | PAMI_ATOMIC_OR,
  PAMI_ATOMIC_FETCH_AND = PAMI_ATOMIC_FETCH | PAMI_ATOMIC_AND,
  PAMI_ATOMIC_FETCH_XOR = PAMI_ATOMIC_FETCH | PAMI_ATOMIC_XOR,
  PAMI_ATOMIC_COMPARE_SET = PAMI_ATOMIC_COMPARE | PAMI_ATOMIC_SET,
  PAMI_ATOMIC_COMPARE_ADD = PAMI_ATOMIC_COMPARE | PAMI_ATOMIC_ADD,
  PAMI_ATOMIC_COMPARE_OR = PAMI_ATOMIC_COMPARE | PAMI_ATOMIC_OR,
  PAMI_ATOMIC_COMPARE_AND = PAMI_ATOMIC_COMPARE | PAMI_ATOMIC_AND,
  PAMI_ATOMIC_COMPARE_XOR = PAMI_ATOMIC_COMPARE | PAMI_ATOMIC_XOR,
  PAMI_ATOMIC_FETCH_COMPARE_SET = PAMI_ATOMIC_FETCH | PAMI_ATOMIC_COMPARE_SET,
  PAMI_ATOMIC_FETCH_COMPARE_ADD = PAMI_ATOMIC_FETCH | PAMI_ATOMIC_COMPARE_ADD,
  PAMI_ATOMIC_FETCH_COMPARE_OR = PAMI_ATOMIC_FETCH | PAMI_ATOMIC_COMPARE_OR,
  PAMI_ATOMIC_FETCH_COMPARE_AND = PAMI_ATOMIC_FETCH | PAMI_ATOMIC_COMPARE_AND,
  PAMI_ATOMIC_FETCH_COMPARE_XOR = PAMI_ATOMIC_FETCH | PAMI_ATOMIC_COMPARE_XOR
} pami_atomic_t;

/* `value` and `test` are read at the call. A long has 32 bits here. */
typedef struct {
  pami_endpoint_t dest;
  pami_send_hint_t hints;
  void *cookie;
  pami_event_function done_fn;
  void *local;
  void *remote;
  void *value;
  void *test;
  pami_atomic_t operation;
  pami_type_t type;
} pami_rmw_t;

/* Types of elements. */
#define PAMI_TYPE_BYTE ((pami_type_t)1)
#define PAMI_TYPE_SIGNED_CHAR ((pami_type_t)2)
#define PAMI_TYPE_UNSIGNED_CHAR ((pami_type_t)3)
#define PAMI_TYPE_SIGNED_SHORT ((pami_type_t)4)
#define PAMI_TYPE_UNSIGNED_SHORT ((pami_type_t)5)
#define PAMI_TYPE_SIGNED_INT ((pami_type_t)6)
#define PAMI_TYPE_UNSIGNED_INT ((pami_type_t)7)
#define PAMI_TYPE_SIGNED_LONG ((pami_type_t)8)
#define PAMI_TYPE_UNSIGNED_LONG ((pami_type_t)9)
#define PAMI_TYPE_SIGNED_LONG_LONG ((pami_type_t)10)
#define PAMI_TYPE_UNSIGNED_LONG_LONG ((pami_type_t)11)
#define PAMI_TYPE_FLOAT ((pami_type_t)12)
#define PAMI_TYPE_DOUBLE ((pami_type_t)13)
#define PAMI_TYPE_LONG_DOUBLE ((pami_type_t)14)
#define PAMI_TYPE_LOGICAL1 ((pami_type_t)15)
#define PAMI_TYPE_LOGICAL2 ((pami_type_t)16)
#define PAMI_TYPE_LOGICAL4 ((pami_type_t)17)
#define PAMI_TYPE_LOGICAL8 ((pami_type_t)18)
#define PAMI_TYPE_SINGLE_COMPLEX ((pami_type_t)19)
#define PAMI_TYPE_DOUBLE_COMPLEX ((pami_type_t)20)
#define PAMI_TYPE_LOC_2INT ((pami_type_t)21)
#define PAMI_TYPE_LOC_FLOAT_INT ((pami_type_t)22)
#define PAMI_TYPE_LOC_DOUBLE_INT ((pami_type_t)23)

/* Reductions: in place of a function. They can't be called. */
#define PAMI_DATA_COPY ((pami_data_function)-1)
#define PAMI_DATA_NOOP ((pami_data_function)-2)
#define PAMI_DATA_MAX ((pami_data_function)-3)
#define PAMI_DATA_MIN ((pami_data_function)-4)
#define PAMI_DATA_SUM ((pami_data_function)-5)
#define PAMI_DATA_PROD ((pami_data_function)-6)
#define PAMI_DATA_LAND ((pami_data_function)-7)
#define PAMI_DATA_LOR ((pami_data_function)-8)
#define PAMI_DATA_LXOR ((pami_data_function)-9)
#define PAMI_DATA_BAND ((pami_data_function)-10)
#define PAMI_DATA_BOR ((pami_data_function)-11)
#define PAMI_DATA_BXOR ((pami_data_function)-12)
#define PAMI_DATA_MAXLOC ((pami_data_function)-13)
#define PAMI_DATA_MINLOC ((pami_data_function)-14)

/* Collective operations. */
typedef enum {
  PAMI_XFER_BROADCAST = 0,
  PAMI_XFER_ALLREDUCE = 1,
  PAMI_XFER_REDUCE = 2,
  PAMI_XFER_ALLGATHER = 3,
  PAMI_XFER_ALLGATHERV = 4,
  PAMI_XFER_ALLGATHERV_INT = 5,
  PAMI_XFER_SCATTER = 6,
  PAMI_XFER_SCATTERV = 7,
  PAMI_XFER_SCATTERV_INT = 8,
  PAMI_XFER_GATHER = 9,
  PAMI_XFER_GATHERV = 10,
  PAMI_XFER_GATHERV_INT = 11,
  PAMI_XFER_BARRIER = 12,
  PAMI_XFER_ALLTOALL = 13,
  PAMI_XFER_ALLTOALLV = 14,
  PAMI_XFER_ALLTOALLV_INT = 15,
  PAMI_XFER_SCAN = 16,
  PAMI_XFER_REDUCE_SCATTER = 17,
  PAMI_XFER_AMBROADCAST = 18,
  PAMI_XFER_AMSCATTER = 19,
  PAMI_XFER_AMGATHER = 20,
  PAMI_XFER_AMREDUCE = 21,
  PAMI_XFER_COUNT = 22,
  PAMI_XFER_TYPE_EXT = 1000
} pami_xfer_type_t;

/* Tasks `lo` to `hi`, both included. */
typedef struct {
  pami_task_t lo;
  pami_task_t hi;
} pami_geometry_range_t;

typedef union metadata_result_t {
  unsigned bitmask;
} metadata_result_t;
struct pami_xfer_t;
typedef metadata_result_t (*pami_metadata_function)(struct pami_xfer_t *transfer);

/* What is known of an algorithm. All that are listed always work, so that there is nothing to check. */
typedef struct {
  char *name;
  unsigned version;
  pami_metadata_function check_fn;
  size_t range_lo;
  size_t range_hi;
  unsigned send_min_align;
  unsigned recv_min_align;
  union {
    unsigned bitmask_correct;
    struct {
      unsigned checkrequired : 1;
      unsigned nonlocal : 1;
      unsigned rangeminmax : 1;
      unsigned sendminalign : 1;
      unsigned recvminalign : 1;
      unsigned alldtop : 1;
      unsigned contigsflags : 1;
      unsigned contigrflags : 1;
      unsigned continsflags : 1;
      unsigned continrflags : 1;
      unsigned blocking : 1;
      unsigned inplace : 1;
      unsigned asyncflowctl : 1;
      unsigned oneatatime : 1;
      unsigned global_order : 4;
    } values;
  } check_correct;
  union {
    unsigned bitmask_perf;
    struct {
      unsigned hw_accel : 1;
    } values;
  } check_perf;
  size_t range_lo_perf;
  size_t range_hi_perf;
  unsigned min_align_perf;
} pami_metadata_t;

typedef struct {
  pami_endpoint_t root;
  char *buf;
  pami_type_t type;
  size_t typecount;
} pami_broadcast_t;

typedef struct {
  char *sndbuf;
  pami_type_t stype;
  size_t stypecount;
  char *rcvbuf;
  pami_type_t rtype;
  size_t rtypecount;
  pami_data_function op;
  void *data_cookie;
  int commutative;
} pami_allreduce_t;

typedef struct {
  pami_endpoint_t root;
  char *sndbuf;
  pami_type_t stype;
  size_t stypecount;
  char *rcvbuf;
  pami_type_t rtype;
  size_t rtypecount;
  pami_data_function op;
  void *data_cookie;
  int commutative;
} pami_reduce_t;

typedef struct {
  char *sndbuf;
  pami_type_t stype;
  size_t stypecount;
  char *rcvbuf;
  pami_type_t rtype;
  size_t rtypecount;
  pami_data_function op;
  void *data_cookie;
  int exclusive;
} pami_scan_t;

typedef struct {
  char *sndbuf;
  pami_type_t stype;
  size_t stypecount;
  char *rcvbuf;
  pami_type_t rtype;
  size_t rtypecount;
} pami_allgather_t;

typedef pami_allgather_t pami_alltoall_t;

typedef struct {
  pami_endpoint_t root;
  char *sndbuf;
  pami_type_t stype;
  size_t stypecount;
  char *rcvbuf;
  pami_type_t rtype;
  size_t rtypecount;
} pami_gather_t;

typedef pami_gather_t pami_scatter_t;

typedef struct {
  char *sndbuf;
  pami_type_t stype;
  size_t stypecount;
  char *rcvbuf;
  pami_type_t rtype;
  size_t *rtypecounts;
  size_t *rdispls;
} pami_allgatherv_t;

typedef struct {
  char *sndbuf;
  pami_type_t stype;
  int stypecount;
  char *rcvbuf;
  pami_type_t rtype;
  int *rtypecounts;
  int *rdispls;
} pami_allgatherv_int_t;

typedef struct {
  pami_endpoint_t root;
  char *sndbuf;
  pami_type_t stype;
  size_t stypecount;
  char *rcvbuf;
  pami_type_t rtype;
  size_t *rtypecounts;
  size_t *rdispls;
} pami_gatherv_t;

typedef struct {
  pami_endpoint_t root;
  char *sndbuf;
  pami_type_t stype;
  int stypecount;
  char *rcvbuf;
  pami_type_t rtype;
  int *rtypecounts;
  int *rdispls;
} pami_gatherv_int_t;

typedef struct {
  pami_endpoint_t root;
  char *sndbuf;
  pami_type_t stype;
  size_t *stypecounts;
  size_t *sdispls;
  char *rcvbuf;
  pami_type_t rtype;
  size_t rtypecount;
} pami_scatterv_t;

typedef struct {
  pami_endpoint_t root;
  char *sndbuf;
  pami_type_t stype;
  int *stypecounts;
  int *sdispls;
  char *rcvbuf;
  pami_type_t rtype;
  int rtypecount;
} pami_scatterv_int_t;

typedef struct {
  char *sndbuf;
  pami_type_t stype;
  size_t *stypecounts;
  size_t *sdispls;
  char *rcvbuf;
  pami_type_t rtype;
  size_t *rtypecounts;
  size_t *rdispls;
} pami_alltoallv_t;

typedef struct {
  char *sndbuf;
  pami_type_t stype;
  int *stypecounts;
  int *sdispls;
  char *rcvbuf;
  pami_type_t rtype;
  int *rtypecounts;
  int *rdispls;
} pami_alltoallv_int_t;

typedef union {
  pami_allreduce_t xfer_allreduce;
  pami_broadcast_t xfer_broadcast;
  pami_reduce_t xfer_reduce;
  pami_allgather_t xfer_allgather;
  pami_allgatherv_t xfer_allgatherv;
  pami_allgatherv_int_t xfer_allgatherv_int;
  pami_scatter_t xfer_scatter;
  pami_scatterv_t xfer_scatterv;
  pami_scatterv_int_t xfer_scatterv_int;
  pami_gather_t xfer_gather;
  pami_gatherv_t xfer_gatherv;
  pami_gatherv_int_t xfer_gatherv_int;
  pami_alltoall_t xfer_alltoall;
  pami_alltoallv_t xfer_alltoallv;
  pami_alltoallv_int_t xfer_alltoallv_int;
  pami_scan_t xfer_scan;
} pami_collective_t;

typedef struct pami_xfer_t {
  pami_event_function cb_done;
  void *cookie;
  pami_algorithm_t algorithm;
  pami_collective_hint_t options;
  pami_collective_t cmd;
} pami_xfer_t;

typedef void *pami_extension_t;

#define PAMIR_PAMI(name) __attribute__((__import_module__("pami"), __import_name__(#name)))

/* Client, contexts, endpoints. */
PAMIR_PAMI(PAMI_Client_create)
pami_result_t PAMI_Client_create(const char *name, pami_client_t *client, pami_configuration_t settings[], size_t count);
PAMIR_PAMI(PAMI_Client_destroy) pami_result_t PAMI_Client_destroy(pami_client_t *client);
PAMIR_PAMI(PAMI_Client_query)
pami_result_t PAMI_Client_query(pami_client_t client, pami_configuration_t settings[], size_t count);
PAMIR_PAMI(PAMI_Client_update)
pami_result_t PAMI_Client_update(pami_client_t client, pami_configuration_t settings[], size_t count);
PAMIR_PAMI(PAMI_Context_createv)
pami_result_t PAMI_Context_createv(pami_client_t client, pami_configuration_t settings[], size_t setting_count,
                                   pami_context_t contexts[], size_t count);
PAMIR_PAMI(PAMI_Context_destroyv) pami_result_t PAMI_Context_destroyv(pami_context_t contexts[], size_t count);
PAMIR_PAMI(PAMI_Context_query)
pami_result_t PAMI_Context_query(pami_context_t context, pami_configuration_t settings[], size_t count);
PAMIR_PAMI(PAMI_Context_update)
pami_result_t PAMI_Context_update(pami_context_t context, pami_configuration_t settings[], size_t count);
PAMIR_PAMI(PAMI_Context_advance) pami_result_t PAMI_Context_advance(pami_context_t context, size_t maximum);
PAMIR_PAMI(PAMI_Context_advancev)
pami_result_t PAMI_Context_advancev(pami_context_t contexts[], size_t count, size_t maximum);
PAMIR_PAMI(PAMI_Context_trylock_advancev)
pami_result_t PAMI_Context_trylock_advancev(pami_context_t contexts[], size_t count, size_t maximum);
PAMIR_PAMI(PAMI_Context_lock) pami_result_t PAMI_Context_lock(pami_context_t context);
PAMIR_PAMI(PAMI_Context_trylock) pami_result_t PAMI_Context_trylock(pami_context_t context);
PAMIR_PAMI(PAMI_Context_unlock) pami_result_t PAMI_Context_unlock(pami_context_t context);
PAMIR_PAMI(PAMI_Context_post)
pami_result_t PAMI_Context_post(pami_context_t context, pami_work_t *work, pami_work_function fn, void *cookie);
PAMIR_PAMI(PAMI_Endpoint_create)
pami_result_t PAMI_Endpoint_create(pami_client_t client, pami_task_t task, size_t offset, pami_endpoint_t *endpoint);
PAMIR_PAMI(PAMI_Endpoint_query)
pami_result_t PAMI_Endpoint_query(pami_endpoint_t endpoint, pami_task_t *task, size_t *offset);
PAMIR_PAMI(PAMI_Purge)
pami_result_t PAMI_Purge(pami_context_t context, pami_endpoint_t *endpoints, size_t count);
PAMIR_PAMI(PAMI_Resume)
pami_result_t PAMI_Resume(pami_context_t context, pami_endpoint_t *endpoints, size_t count);

/* Time, and what the last result that was no success means. */
PAMIR_PAMI(PAMI_Wtime) double PAMI_Wtime(pami_client_t client);
PAMIR_PAMI(PAMI_Wtimebase) unsigned long long PAMI_Wtimebase(pami_client_t client);
PAMIR_PAMI(PAMI_Error_text) size_t PAMI_Error_text(char *text, size_t length);

/* Active messages. */
PAMIR_PAMI(PAMI_Dispatch_set)
pami_result_t PAMI_Dispatch_set(pami_context_t context, size_t dispatch, pami_dispatch_callback_function fn,
                                void *cookie, pami_dispatch_hint_t hints);
PAMIR_PAMI(PAMI_Dispatch_query)
pami_result_t PAMI_Dispatch_query(pami_context_t context, size_t dispatch, pami_configuration_t settings[],
                                  size_t count);
PAMIR_PAMI(PAMI_Dispatch_update)
pami_result_t PAMI_Dispatch_update(pami_context_t context, size_t dispatch, pami_configuration_t settings[],
                                   size_t count);
PAMIR_PAMI(PAMI_Send) pami_result_t PAMI_Send(pami_context_t context, pami_send_t *parameters);
PAMIR_PAMI(PAMI_Send_immediate)
pami_result_t PAMI_Send_immediate(pami_context_t context, pami_send_immediate_t *parameters);
PAMIR_PAMI(PAMI_Send_typed) pami_result_t PAMI_Send_typed(pami_context_t context, pami_send_typed_t *parameters);

/* One-sided operations. */
PAMIR_PAMI(PAMI_Put) pami_result_t PAMI_Put(pami_context_t context, pami_put_simple_t *parameters);
PAMIR_PAMI(PAMI_Get) pami_result_t PAMI_Get(pami_context_t context, pami_get_simple_t *parameters);
PAMIR_PAMI(PAMI_Rput) pami_result_t PAMI_Rput(pami_context_t context, pami_rput_simple_t *parameters);
PAMIR_PAMI(PAMI_Rget) pami_result_t PAMI_Rget(pami_context_t context, pami_rget_simple_t *parameters);
PAMIR_PAMI(PAMI_Rmw) pami_result_t PAMI_Rmw(pami_context_t context, pami_rmw_t *parameters);
PAMIR_PAMI(PAMI_Memregion_create)
pami_result_t PAMI_Memregion_create(pami_context_t context, void *address, size_t bytes, size_t *granted,
                                    pami_memregion_t *region);
PAMIR_PAMI(PAMI_Memregion_destroy)
pami_result_t PAMI_Memregion_destroy(pami_context_t context, pami_memregion_t *region);
PAMIR_PAMI(PAMI_Fence_begin) pami_result_t PAMI_Fence_begin(pami_context_t context);
PAMIR_PAMI(PAMI_Fence_end) pami_result_t PAMI_Fence_end(pami_context_t context);
PAMIR_PAMI(PAMI_Fence_all)
pami_result_t PAMI_Fence_all(pami_context_t context, pami_event_function done_fn, void *cookie);
PAMIR_PAMI(PAMI_Fence_endpoint)
pami_result_t PAMI_Fence_endpoint(pami_context_t context, pami_event_function done_fn, void *cookie,
                                  pami_endpoint_t target);

/* Geometries and collective operations. */
PAMIR_PAMI(PAMI_Geometry_world)
pami_result_t PAMI_Geometry_world(pami_client_t client, pami_geometry_t *geometry);
PAMIR_PAMI(PAMI_Geometry_create_taskrange)
pami_result_t PAMI_Geometry_create_taskrange(pami_client_t client, size_t context_offset,
                                             pami_configuration_t settings[], size_t setting_count,
                                             pami_geometry_t *geometry, pami_geometry_t parent, unsigned id,
                                             pami_geometry_range_t *ranges, size_t count, pami_context_t context,
                                             pami_event_function fn, void *cookie);
PAMIR_PAMI(PAMI_Geometry_create_tasklist)
pami_result_t PAMI_Geometry_create_tasklist(pami_client_t client, size_t context_offset,
                                            pami_configuration_t settings[], size_t setting_count,
                                            pami_geometry_t *geometry, pami_geometry_t parent, unsigned id,
                                            pami_task_t *tasks, size_t count, pami_context_t context,
                                            pami_event_function fn, void *cookie);
PAMIR_PAMI(PAMI_Geometry_create_endpointlist)
pami_result_t PAMI_Geometry_create_endpointlist(pami_client_t client, pami_configuration_t settings[],
                                                size_t setting_count, pami_geometry_t *geometry, unsigned id,
                                                pami_endpoint_t *endpoints, size_t count, pami_context_t context,
                                                pami_event_function fn, void *cookie);
PAMIR_PAMI(PAMI_Geometry_destroy)
pami_result_t PAMI_Geometry_destroy(pami_client_t client, pami_geometry_t *geometry, pami_context_t context,
                                    pami_event_function fn, void *cookie);
PAMIR_PAMI(PAMI_Geometry_query)
pami_result_t PAMI_Geometry_query(pami_geometry_t geometry, pami_configuration_t settings[], size_t count);
PAMIR_PAMI(PAMI_Geometry_update)
pami_result_t PAMI_Geometry_update(pami_geometry_t geometry, pami_configuration_t settings[], size_t count,
                                   pami_context_t context, pami_event_function fn, void *cookie);
PAMIR_PAMI(PAMI_Geometry_algorithms_num)
pami_result_t PAMI_Geometry_algorithms_num(pami_geometry_t geometry, pami_xfer_type_t type, size_t *counts);
PAMIR_PAMI(PAMI_Geometry_algorithms_query)
pami_result_t PAMI_Geometry_algorithms_query(pami_geometry_t geometry, pami_xfer_type_t type,
                                             pami_algorithm_t *always, pami_metadata_t *always_metadata,
                                             size_t always_count, pami_algorithm_t *others,
                                             pami_metadata_t *others_metadata, size_t others_count);
PAMIR_PAMI(PAMI_Collective) pami_result_t PAMI_Collective(pami_context_t context, pami_xfer_t *transfer);

/* Types of the program's own. */
PAMIR_PAMI(PAMI_Type_create) pami_result_t PAMI_Type_create(pami_type_t *type);
PAMIR_PAMI(PAMI_Type_add_simple)
pami_result_t PAMI_Type_add_simple(pami_type_t type, size_t bytes, size_t offset, size_t count, size_t stride);
PAMIR_PAMI(PAMI_Type_add_typed)
pami_result_t PAMI_Type_add_typed(pami_type_t type, pami_type_t part, size_t offset, size_t count, size_t stride);
PAMIR_PAMI(PAMI_Type_complete) pami_result_t PAMI_Type_complete(pami_type_t type, size_t atom_size);
PAMIR_PAMI(PAMI_Type_destroy) pami_result_t PAMI_Type_destroy(pami_type_t *type);
PAMIR_PAMI(PAMI_Type_query)
pami_result_t PAMI_Type_query(pami_type_t type, pami_configuration_t settings[], size_t count);

/* Extensions: there are none. */
PAMIR_PAMI(PAMI_Extension_open)
pami_result_t PAMI_Extension_open(pami_client_t client, const char *name, pami_extension_t *extension);
PAMIR_PAMI(PAMI_Extension_close) pami_result_t PAMI_Extension_close(pami_extension_t extension);
PAMIR_PAMI(PAMI_Extension_symbol) void *PAMI_Extension_symbol(pami_extension_t extension, const char *name);

#ifdef __cplusplus
}
#endif

#endif
