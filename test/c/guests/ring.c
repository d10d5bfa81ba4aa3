// A threaded program without a library, in whose memory pamir is a guest. Each thread calls run(), which returns 0, or the line
// of the first rule that does not hold.
#include <pami.h>

#define EXPORT(name) __attribute__((export_name(#name)))
#define THREADS 8
#define MESSAGES 2000
#define WORDS 1000
#define LONG 300000
#define WASM_PAGE 65536
#define MUST(rule)          \
  do {                      \
    if (!(rule)) return __LINE__; \
  } while (0)
#define DONE(call) MUST((call) == PAMI_SUCCESS)

extern char __heap_base;

/* Memory that stays: behind the program's data. The memory grows for it. */
static int allocating;
static size_t unused;

EXPORT(allocate) char *allocate(size_t bytes) {
  while (__atomic_exchange_n(&allocating, 1, __ATOMIC_SEQ_CST));
  size_t start = ((unused ? unused : (size_t)&__heap_base) + 4095) & ~(size_t)4095;
  size_t there = __builtin_wasm_memory_size(0) * WASM_PAGE;
  size_t missing = start + bytes > there ? (start + bytes - there + WASM_PAGE - 1) / WASM_PAGE : 0;
  if (missing && __builtin_wasm_memory_grow(0, missing) == (size_t)-1)
    start = 0;
  else
    unused = start + bytes;
  __atomic_store_n(&allocating, 0, __ATOMIC_SEQ_CST);
  return (char *)start;
}

/* What the threads have for each other. */
static int arrays[THREADS][WORDS];
static long long counter;
static char *grown[THREADS];

struct thread {
  size_t task, tasks;
  pami_client_t client;
  pami_context_t context;
  pami_geometry_t world;
  pami_endpoint_t next;
  const char *block;
  size_t block_bytes;
  int came, wrong, done, ended;
  char *longest;
};

static void wait_for(struct thread *self, volatile int *counter, int wanted) {
  while (*counter < wanted && !self->ended) PAMI_Context_advance(self->context, 100);
}

static void on_done(pami_context_t context, void *cookie, pami_result_t result) {
  struct thread *self = cookie;
  (void)context;
  if (result == PAMI_SUCCESS) self->done++;
  if (result == PAMI_SHUTDOWN) self->ended++;
}

static void on_count(pami_context_t context, void *cookie, const void *header, size_t header_size, const void *data,
                     size_t data_size, pami_endpoint_t origin, pami_recv_t *receive) {
  struct thread *self = cookie;
  int number = *(const int *)header;
  const char *bytes = data;
  (void)context, (void)origin;
  /* What came lies in the block, where the program reads it in place. */
  if (header_size != sizeof number || number != self->came || data_size != 16 || receive) self->wrong++;
  if (bytes < self->block || bytes + data_size > self->block + self->block_bytes) self->wrong++;
  for (size_t i = 0; i < data_size; i++)
    if (bytes[i] != (char)(number + i)) self->wrong++;
  self->came++;
}

static void on_long(pami_context_t context, void *cookie, const void *header, size_t header_size, const void *data,
                    size_t data_size, pami_endpoint_t origin, pami_recv_t *receive) {
  struct thread *self = cookie;
  (void)context, (void)header, (void)header_size, (void)data, (void)origin;
  self->longest = allocate(data_size);
  receive->addr = self->longest;
  receive->type = PAMI_TYPE_BYTE;
  receive->local_fn = on_done;
  receive->cookie = self;
}

static int set(struct thread *self, size_t dispatch, pami_dispatch_p2p_function handler) {
  pami_dispatch_callback_function fn = {.p2p = handler};
  pami_dispatch_hint_t hints = {0};
  DONE(PAMI_Dispatch_set(self->context, dispatch, fn, self, hints));
  return 0;
}

static int collective(struct thread *self, pami_geometry_t geometry, pami_xfer_type_t type, pami_xfer_t *transfer) {
  pami_algorithm_t algorithms[32];
  pami_metadata_t metadata[32];
  size_t counts[2];
  DONE(PAMI_Geometry_algorithms_num(geometry, type, counts));
  MUST(counts[0] <= 32);
  DONE(PAMI_Geometry_algorithms_query(geometry, type, algorithms, metadata, counts[0], 0, 0, 0));
  transfer->cb_done = on_done;
  transfer->cookie = self;
  transfer->algorithm = algorithms[0];
  self->done = 0;
  DONE(PAMI_Collective(self->context, transfer));
  wait_for(self, &self->done, 1);
  return self->ended;
}

static int barrier(struct thread *self) {
  pami_xfer_t transfer = {0};
  return collective(self, self->world, PAMI_XFER_BARRIER, &transfer);
}

static int sum(struct thread *self, pami_geometry_t geometry, int *from, int *to, size_t count) {
  pami_xfer_t transfer = {0};
  pami_allreduce_t *command = &transfer.cmd.xfer_allreduce;
  command->sndbuf = (char *)from;
  command->rcvbuf = (char *)to;
  command->stype = command->rtype = PAMI_TYPE_SIGNED_INT;
  command->stypecount = command->rtypecount = count;
  command->op = PAMI_DATA_SUM;
  command->commutative = 1;
  return collective(self, geometry, PAMI_XFER_ALLREDUCE, &transfer);
}

/* Sends in a ring; the memory grows meanwhile, and the later payloads lie in what was not there at launch. */
static int messages(struct thread *self) {
  char bytes[16], *from = bytes;
  for (int i = 0; i < MESSAGES; i++) {
    if (i % 500 == 100) MUST(allocate(3 << 20));
    if (i == MESSAGES / 2) MUST(from = allocate(16));
    for (int j = 0; j < 16; j++) from[j] = (char)(i + j);
    pami_send_immediate_t send = {.dispatch = 1, .dest = self->next, .header = {&i, sizeof i}, .data = {from, 16}};
    pami_result_t result;
    while ((result = PAMI_Send_immediate(self->context, &send)) == PAMI_EAGAIN)
      PAMI_Context_advance(self->context, 1);
    MUST(result == PAMI_SUCCESS);
  }
  wait_for(self, &self->came, MESSAGES);
  MUST(self->wrong == 0);

  char *sent = grown[self->task] = allocate(LONG);
  MUST(sent);
  for (int i = 0; i < LONG; i++) sent[i] = (char)(i * 7 + self->task);
  pami_send_t send = {.send = {.dispatch = 2, .dest = self->next, .header = {"abc", 4}, .data = {sent, LONG}},
                      .events = {.cookie = self, .local_fn = on_done}};
  self->done = 0;
  DONE(PAMI_Send(self->context, &send));
  wait_for(self, &self->done, 2);
  for (int i = 0; i < LONG; i++) MUST(self->longest[i] == (char)(i * 7 + (self->task + self->tasks - 1) % self->tasks));
  return 0;
}

static int fence(struct thread *self) {
  self->done = 0;
  DONE(PAMI_Fence_all(self->context, on_done, self));
  wait_for(self, &self->done, 1);
  return barrier(self);
}

/* Puts and gets between arrays of the program, and a counter that all raise. */
static int transfers(struct thread *self) {
  size_t there = (self->task + 1) % self->tasks;
  int mine[WORDS];
  for (int i = 0; i < WORDS; i++) mine[i] = i + (int)self->task;
  pami_put_simple_t put = {.rma = {.dest = self->next, .bytes = sizeof mine, .cookie = self, .done_fn = on_done},
                           .addr = {mine, arrays[there]}};
  DONE(PAMI_Put(self->context, &put));
  int failed = fence(self);
  if (failed) return failed;
  int left = (int)((self->task + self->tasks - 1) % self->tasks);
  for (int i = 0; i < WORDS; i++) MUST(arrays[self->task][i] == i + left);

  /* Between places that were not there at launch; above, what the neighbor has put lies in its own array. */
  char *copy = allocate(LONG);
  MUST(copy);
  pami_get_simple_t get = {.rma = {.dest = self->next, .bytes = LONG, .cookie = self, .done_fn = on_done},
                           .addr = {copy, grown[there]}};
  self->done = 0;
  DONE(PAMI_Get(self->context, &get));
  wait_for(self, &self->done, 1);
  for (int i = 0; i < LONG; i++) MUST(copy[i] == (char)(i * 7 + there));

  long long *value = (long long *)copy, *before = (long long *)(copy + 64);
  *value = 1LL << 33;
  pami_rmw_t rmw = {.dest = 0, .cookie = self, .done_fn = on_done, .local = before, .remote = &counter, .value = value,
                    .operation = PAMI_ATOMIC_FETCH_ADD, .type = PAMI_TYPE_SIGNED_LONG_LONG};
  self->done = 0;
  DONE(PAMI_Rmw(self->context, &rmw));
  wait_for(self, &self->done, 1);
  MUST(*before % (1LL << 33) == 0 && *before >> 33 < (long long)self->tasks);
  failed = barrier(self);
  if (failed) return failed;
  MUST(counter == (long long)self->tasks << 33);

  /* Not the program's own: pamir's block, NULL, and what is beyond the memory. */
  get.rma.bytes = 8;
  get.addr.local = (char *)self->block + 256;
  MUST(PAMI_Get(self->context, &get) == PAMI_INVAL);
  get.addr.local = copy;
  get.addr.remote = (char *)self->block + self->block_bytes / 2;
  MUST(PAMI_Get(self->context, &get) == PAMI_INVAL);
  get.addr.remote = (char *)(__builtin_wasm_memory_size(0) * WASM_PAGE - 4);
  MUST(PAMI_Get(self->context, &get) == PAMI_INVAL);
  return 0;
}

/* Sums from and to arrays that were there at launch, and such that were not. */
static int sums(struct thread *self) {
  int *later = (int *)allocate(2 * sizeof(int[WORDS]));
  MUST(later);
  int *places[] = {arrays[self->task], later, later + WORDS};
  for (int from = 0; from < 2; from++) {
    for (int count = 1; count <= WORDS; count = count == 1 ? WORDS : count + 1) {
      for (int i = 0; i < count; i++) places[from][i] = i * 3 + (int)self->task;
      int failed = sum(self, self->world, places[from], places[2 * !from + from * 2], count);
      if (failed) return failed;
      int tasks = (int)self->tasks;
      for (int i = 0; i < count; i++) MUST(later[WORDS + i] == i * 3 * tasks + tasks * (tasks - 1) / 2);
    }
  }
  return 0;
}

/* The last thread's array, to arrays that were there at launch, and such that were not. */
static int broadcasts(struct thread *self) {
  int *later = (int *)allocate(sizeof(int[WORDS]));
  MUST(later);
  for (int i = 0; i < 2; i++) {
    int *array = i == 0 ? later : arrays[self->task];
    int isRoot = self->task == self->tasks - 1;
    for (int j = 0; j < WORDS; j++) array[j] = isRoot ? j * 5 + i : -1;
    pami_xfer_t transfer = {0};
    pami_broadcast_t *command = &transfer.cmd.xfer_broadcast;
    DONE(PAMI_Endpoint_create(self->client, self->tasks - 1, 0, &command->root));
    command->buf = (char *)array;
    command->type = PAMI_TYPE_SIGNED_INT;
    command->typecount = WORDS;
    int failed = collective(self, self->world, PAMI_XFER_BROADCAST, &transfer);
    if (failed) return failed;
    for (int j = 0; j < WORDS; j++) MUST(array[j] == j * 5 + i);
  }
  return 0;
}

static int begin(struct thread *self) {
  DONE(PAMI_Client_create("guest", &self->client, 0, 0));
  DONE(PAMI_Context_createv(self->client, 0, 0, &self->context, 1));
  DONE(PAMI_Geometry_world(self->client, &self->world));
  pami_configuration_t settings[] = {{.name = PAMI_CLIENT_TASK_ID}, {.name = PAMI_CLIENT_NUM_TASKS}};
  DONE(PAMI_Client_query(self->client, settings, 2));
  self->task = settings[0].value.intval;
  self->tasks = settings[1].value.intval;
  DONE(PAMI_Endpoint_create(self->client, (self->task + 1) % self->tasks, 0, &self->next));
  int failed = set(self, 1, on_count);
  return failed ? failed : set(self, 2, on_long);
}

EXPORT(run) int run(const char *block, size_t block_bytes) {
  struct thread self = {.block = block, .block_bytes = block_bytes};
  int failed = begin(&self);
  if (!failed) failed = barrier(&self);
  if (!failed) failed = sums(&self);
  if (!failed) failed = broadcasts(&self);
  if (!failed) failed = messages(&self);
  if (!failed) failed = barrier(&self);
  if (!failed) failed = transfers(&self);
  if (!failed) failed = sums(&self);
  if (!failed) failed = barrier(&self);
  return failed;
}

/* The last thread traps. The others hear of that by what they send to it, and go on without it. */
EXPORT(outlive) int outlive(const char *block, size_t block_bytes) {
  struct thread self = {.block = block, .block_bytes = block_bytes};
  int failed = begin(&self);
  if (!failed) failed = barrier(&self);
  if (failed) return failed;
  if (self.task == self.tasks - 1) __builtin_trap();
  pami_send_t send = {.send = {.dispatch = 1, .header = {"abc", 4}}, .events = {.cookie = &self, .remote_fn = on_done}};
  DONE(PAMI_Endpoint_create(self.client, self.tasks - 1, 0, &send.send.dest));
  while (!self.ended) {
    pami_result_t result = PAMI_Send(self.context, &send);
    if (result == PAMI_SHUTDOWN) self.ended++;
    else MUST(result == PAMI_SUCCESS || result == PAMI_EAGAIN);
    PAMI_Context_advance(self.context, 100);
  }
  self.ended = 0;
  pami_geometry_t survivors;
  pami_geometry_range_t range = {0, self.tasks - 2};
  DONE(PAMI_Geometry_create_taskrange(self.client, 0, 0, 0, &survivors, self.world, 7, &range, 1, self.context, 0, 0));
  int one = 1, all = 0;
  failed = sum(&self, survivors, &one, &all, 1);
  return failed ? failed : all == (int)self.tasks - 1 ? 0 : __LINE__;
}
