// The rules of PAMI: each line is a rule, with the number of tasks that keep it. Task 0 of a ring sends to the next one.
#include <pami.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG 300000

static pami_client_t client;
static pami_context_t context;
static pami_geometry_t world;
static size_t task, tasks;
static pami_endpoint_t next;

static int failed(const char *what) {
  char text[200];
  PAMI_Error_text(text, sizeof text);
  fprintf(stderr, "task %zu: %s: %s\n", task, what, text);
  exit(3);
}

#define MUST(call) ((call) == PAMI_SUCCESS || failed(#call))

static void count(pami_context_t from, void *cookie, pami_result_t result) {
  if (from == context && result == PAMI_SUCCESS) ++*(volatile int *)cookie;
}

static void wait_for(volatile int *counter, int wanted) {
  while (*counter < wanted) PAMI_Context_advance(context, 100);
}

static pami_algorithm_t first_of(pami_geometry_t geometry, pami_xfer_type_t type) {
  size_t counts[2];
  MUST(PAMI_Geometry_algorithms_num(geometry, type, counts));
  pami_algorithm_t *found = malloc(counts[0] * sizeof *found);
  pami_metadata_t *metadata = malloc(counts[0] * sizeof *metadata);
  MUST(PAMI_Geometry_algorithms_query(geometry, type, found, metadata, counts[0], NULL, NULL, 0));
  pami_algorithm_t algorithm = strlen(metadata[0].name) > 0 ? found[0] : 0;
  free(found);
  free(metadata);
  return algorithm;
}

static void collective(pami_geometry_t geometry, pami_xfer_type_t type, pami_xfer_t *transfer) {
  volatile int done = 0;
  transfer->cb_done = count;
  transfer->cookie = (void *)&done;
  transfer->algorithm = first_of(geometry, type);
  MUST(PAMI_Collective(context, transfer));
  wait_for(&done, 1);
}

static void barrier(void) {
  pami_xfer_t transfer = {0};
  collective(world, PAMI_XFER_BARRIER, &transfer);
}

static void reduce(pami_geometry_t geometry, void *from, void *to, pami_type_t type, size_t elements,
                   pami_data_function op) {
  pami_xfer_t transfer = {0};
  pami_allreduce_t *command = &transfer.cmd.xfer_allreduce;
  command->sndbuf = from;
  command->rcvbuf = to;
  command->stype = command->rtype = type;
  command->stypecount = command->rtypecount = elements;
  command->op = op;
  command->commutative = 1;
  collective(geometry, PAMI_XFER_ALLREDUCE, &transfer);
}

static void check(const char *what, int right) {
  int all = 0;
  right = right != 0;
  reduce(world, &right, &all, PAMI_TYPE_SIGNED_INT, 1, PAMI_DATA_SUM);
  if (task == 0) printf("%s: %d of %zu\n", what, all, tasks);
}

static size_t attribute(pami_attribute_name_t name) {
  pami_configuration_t setting = {.name = name};
  MUST(PAMI_Client_query(client, &setting, 1));
  return setting.value.intval;
}

/* Messages: dispatch id 1 counts them in order, 2 answers, 3 takes long ones. */
static volatile int came, in_order = 1, answered, arrived;
static int kept_cookie = 77;
static char *longest;

static void on_count(pami_context_t from, void *cookie, const void *header, size_t header_size, const void *data,
                     size_t data_size, pami_endpoint_t origin, pami_recv_t *receive) {
  int number;
  pami_task_t sender;
  size_t offset;
  PAMI_Endpoint_query(origin, &sender, &offset);
  memcpy(&number, header, sizeof number);
  in_order = in_order && from == context && *(int *)cookie == 77 && header_size == sizeof number && number == came &&
             data_size == (size_t)number % 5 && data != NULL && receive == NULL && offset == 0 &&
             sender == (task + tasks - 1) % tasks;
  for (size_t i = 0; i < data_size; i++) in_order = in_order && ((const char *)data)[i] == (char)(number + i);
  came++;
}

static void on_ask(pami_context_t from, void *cookie, const void *header, size_t header_size, const void *data,
                   size_t data_size, pami_endpoint_t origin, pami_recv_t *receive) {
  (void)cookie, (void)receive;
  pami_send_immediate_t answer = {0};
  answer.dispatch = 4;
  answer.dest = origin;
  answer.header = (struct iovec){(void *)header, header_size};
  answer.data = (struct iovec){(void *)data, data_size};
  PAMI_Send_immediate(from, &answer);
}

static void on_answer(pami_context_t from, void *cookie, const void *header, size_t header_size, const void *data,
                      size_t data_size, pami_endpoint_t origin, pami_recv_t *receive) {
  (void)from, (void)cookie, (void)receive;
  if (header_size == 4 && memcmp(header, "head", 4) == 0 && data_size == 7 && memcmp(data, "payload", 7) == 0 &&
      origin == next)
    answered++;
}

static void on_long(pami_context_t from, void *cookie, const void *header, size_t header_size, const void *data,
                    size_t data_size, pami_endpoint_t origin, pami_recv_t *receive) {
  (void)from, (void)origin, (void)header;
  if (data != NULL || receive == NULL || header_size != 3) return;
  longest = malloc(data_size);
  receive->addr = longest;
  receive->type = PAMI_TYPE_BYTE;
  receive->local_fn = count;
  receive->cookie = cookie;
}

static void set(size_t dispatch, pami_dispatch_p2p_function handler, void *cookie, unsigned immediate) {
  pami_dispatch_callback_function fn = {.p2p = handler};
  pami_dispatch_hint_t hints = {.recv_immediate = immediate};
  MUST(PAMI_Dispatch_set(context, dispatch, fn, cookie, hints));
}

static void messages(void) {
  set(1, on_count, &kept_cookie, PAMI_HINT_DEFAULT);
  set(2, on_ask, NULL, PAMI_HINT_DEFAULT);
  set(3, on_long, (void *)&arrived, PAMI_HINT_DEFAULT);
  set(4, on_answer, NULL, PAMI_HINT_ENABLE);
  char bytes[8];
  volatile int sent = 0, there = 0;
  for (int i = 0; i < 1000; i++) {
    for (int j = 0; j < 5; j++) bytes[j] = (char)(i + j);
    pami_send_t send = {0};
    send.send.dispatch = 1;
    send.send.dest = next;
    send.send.header = (struct iovec){&i, sizeof i};
    send.send.data = (struct iovec){bytes, i % 5};
    if (i % 2 == 0) {
      MUST(PAMI_Send_immediate(context, &send.send));
    } else {
      int before = sent, before_there = there;
      send.events.cookie = (void *)&sent;
      send.events.local_fn = count;
      MUST(PAMI_Send(context, &send));
      wait_for(&sent, before + 1);
      (void)before_there;
    }
  }
  wait_for(&came, 1000);
  check("messages come in order, whole", in_order && came == 1000 && sent == 500);

  pami_send_immediate_t ask = {0};
  ask.dispatch = 2;
  ask.dest = next;
  ask.header = (struct iovec){"head", 4};
  ask.data = (struct iovec){"payload", 7};
  MUST(PAMI_Send_immediate(context, &ask));
  wait_for(&answered, 1);
  check("a handler answers with what it got", answered == 1);

  char *from = malloc(LONG);
  for (int i = 0; i < LONG; i++) from[i] = (char)(i * 7 + task);
  pami_send_t send = {0};
  send.send.dispatch = 3;
  send.send.dest = next;
  send.send.header = (struct iovec){"abc", 3};
  send.send.data = (struct iovec){from, LONG};
  send.events.cookie = (void *)&there;
  send.events.local_fn = count;
  send.events.remote_fn = count;
  MUST(PAMI_Send(context, &send));
  wait_for(&there, 2);
  wait_for(&arrived, 1);
  int right = 1;
  for (int i = 0; i < LONG; i++) right = right && longest[i] == (char)(i * 7 + (task + tasks - 1) % tasks);
  check("a long message goes where its handler says", right);
  free(from);
  free(longest);

  ask.dispatch = 1 << 20;
  int refused = PAMI_Send_immediate(context, &ask) == PAMI_INVAL;
  char text[200];
  size_t length = PAMI_Error_text(text, sizeof text);
  check("a wrong argument is PAMI_INVAL, and has a text", refused && length == strlen(text) && strstr(text, "1048576"));
}

/* Memory that others reach: its addresses go around by an allgather. */
static struct {
  char bytes[64];
  long long wide;
  int counter;
} shared;

static void one_sided(void) {
  void **places = malloc(tasks * sizeof *places), *own = &shared;
  pami_xfer_t transfer = {0};
  pami_allgather_t *gather = &transfer.cmd.xfer_allgather;
  gather->sndbuf = (char *)&own;
  gather->rcvbuf = (char *)places;
  gather->stype = gather->rtype = PAMI_TYPE_BYTE;
  gather->stypecount = gather->rtypecount = sizeof own;
  collective(world, PAMI_XFER_ALLGATHER, &transfer);
  size_t to = (task + 1) % tasks, before = (task + tasks - 1) % tasks;
  char *there = places[to];

  char from[64], back[64];
  memset(from, 'a' + (int)task, sizeof from);
  volatile int local = 0;
  pami_put_simple_t put = {0};
  put.rma.dest = next;
  put.rma.bytes = sizeof from;
  put.rma.cookie = (void *)&local;
  put.rma.done_fn = count;
  put.addr.local = from;
  put.addr.remote = there;
  put.put.rdone_fn = count;
  MUST(PAMI_Put(context, &put));
  wait_for(&local, 2);
  pami_get_simple_t get = {0};
  get.rma.dest = next;
  get.rma.bytes = sizeof back;
  get.rma.cookie = (void *)&local;
  get.rma.done_fn = count;
  get.addr.local = back;
  get.addr.remote = there;
  MUST(PAMI_Get(context, &get));
  wait_for(&local, 3);
  check("a get reads what a put has written", memcmp(from, back, sizeof back) == 0);
  barrier();
  check("a put is in the target's memory", shared.bytes[0] == 'a' + (char)before && shared.bytes[63] == shared.bytes[0]);

  /* Two puts to the same place, and a fence between them. */
  volatile int fenced = 0;
  put.rma.done_fn = NULL;
  put.put.rdone_fn = NULL;
  MUST(PAMI_Fence_begin(context));
  MUST(PAMI_Put(context, &put));
  MUST(PAMI_Fence_endpoint(context, count, (void *)&fenced, next));
  wait_for(&fenced, 1);
  memset(from, 'A' + (int)task, sizeof from);
  MUST(PAMI_Put(context, &put));
  MUST(PAMI_Fence_all(context, count, (void *)&fenced));
  wait_for(&fenced, 2);
  MUST(PAMI_Fence_end(context));
  barrier();
  check("a fence orders puts", shared.bytes[5] == 'A' + (char)before);
  check("fence regions do not nest", PAMI_Fence_end(context) == PAMI_INVAL);

  put.addr.remote = (char *)(intptr_t)-4096;
  check("a put beyond the target's memory is refused", PAMI_Put(context, &put) == PAMI_INVAL);

  int one = 3, old = -1;
  pami_rmw_t rmw = {0};
  PAMI_Endpoint_create(client, 0, 0, &rmw.dest);
  rmw.cookie = (void *)&local;
  rmw.done_fn = count;
  rmw.local = &old;
  rmw.remote = (char *)places[0] + ((char *)&shared.counter - (char *)&shared);
  rmw.value = &one;
  rmw.operation = PAMI_ATOMIC_FETCH_ADD;
  rmw.type = PAMI_TYPE_SIGNED_INT;
  MUST(PAMI_Rmw(context, &rmw));
  wait_for(&local, 4);
  int seen = old % 3 == 0 && old >= 0 && old < 3 * (int)tasks;
  barrier();
  check("each task counts once", seen && (task != 0 || shared.counter == 3 * (int)tasks));

  long long wide = 1LL << 40, test = 0, found = -1;
  rmw.dest = next;
  rmw.local = &found;
  rmw.remote = there + ((char *)&shared.wide - (char *)&shared);
  rmw.value = &wide;
  rmw.test = &test;
  rmw.operation = PAMI_ATOMIC_FETCH_COMPARE_SET;
  rmw.type = PAMI_TYPE_SIGNED_LONG_LONG;
  MUST(PAMI_Rmw(context, &rmw));
  wait_for(&local, 5);
  wide = 9;
  MUST(PAMI_Rmw(context, &rmw));
  wait_for(&local, 6);
  barrier();
  check("a compare changes what is equal alone", shared.wide == 1LL << 40 && found == 1LL << 40);

  /* Memory regions, whose names go around. */
  size_t granted = 0;
  pami_memregion_t mine, *names = malloc(tasks * sizeof *names);
  MUST(PAMI_Memregion_create(context, shared.bytes, sizeof shared.bytes, &granted, &mine));
  gather->sndbuf = (char *)&mine;
  gather->rcvbuf = (char *)names;
  gather->stypecount = gather->rtypecount = sizeof mine;
  collective(world, PAMI_XFER_ALLGATHER, &transfer);
  pami_memregion_t source;
  memset(from, '0' + (int)task, sizeof from);
  MUST(PAMI_Memregion_create(context, from, sizeof from, &granted, &source));
  pami_rput_simple_t rput = {0};
  rput.rma.dest = next;
  rput.rma.bytes = 8;
  rput.rma.cookie = (void *)&local;
  rput.rdma.local.mr = &source;
  rput.rdma.remote.mr = &names[to];
  rput.rdma.remote.offset = 16;
  rput.put.rdone_fn = count;
  MUST(PAMI_Rput(context, &rput));
  wait_for(&local, 7);
  barrier();
  int right = shared.bytes[15] == 'A' + (char)before && shared.bytes[16] == '0' + (char)before &&
              shared.bytes[23] == '0' + (char)before && shared.bytes[24] == 'A' + (char)before;
  pami_rget_simple_t rget = {0};
  rget.rma.dest = next;
  rget.rma.bytes = 8;
  rget.rma.cookie = (void *)&local;
  rget.rma.done_fn = count;
  rget.rdma.local.mr = &source;
  rget.rdma.local.offset = 8;
  rget.rdma.remote.mr = &names[to];
  rget.rdma.remote.offset = 24;
  MUST(PAMI_Rget(context, &rget));
  wait_for(&local, 8);
  right = right && from[7] == '0' + (char)task && from[8] == 'A' + (char)task && from[16] == '0' + (char)task;
  rget.rdma.remote.offset = 60;
  right = right && PAMI_Rget(context, &rget) == PAMI_INVAL;
  MUST(PAMI_Memregion_destroy(context, &mine));
  check("memory regions name memory, and their bounds hold", right);
  barrier();
  free(places);
  free(names);
}

static int runs;

static pami_result_t work(pami_context_t on, void *cookie) {
  if (on != context || *(int *)cookie != 5) return PAMI_SUCCESS;
  return ++runs < 3 ? PAMI_EAGAIN : PAMI_SUCCESS;
}

static void smaller_of_squares(void *target, void *source, size_t bytes, void *cookie) {
  (void)cookie;
  for (size_t i = 0; i < bytes / sizeof(int); i++)
    if (((int *)source)[i] * ((int *)source)[i] < ((int *)target)[i] * ((int *)target)[i])
      ((int *)target)[i] = ((int *)source)[i];
}

static void geometries(void) {
  double from[3] = {1.5, (double)task, -(double)task}, to[3];
  reduce(world, from, to, PAMI_TYPE_DOUBLE, 3, PAMI_DATA_MAX);
  check("the largest of all", to[0] == 1.5 && to[1] == (double)(tasks - 1) && to[2] == 0);
  int own = (int)task - 5, least = 0, squares = (int)tasks > 5 ? 0 : 5 - (int)tasks + 1;
  reduce(world, &own, &least, PAMI_TYPE_SIGNED_INT, 1, smaller_of_squares);
  check("a function of the program reduces", least * least == squares * squares);

  pami_xfer_t transfer = {0};
  int value = task == tasks - 1 ? 42 : 0;
  PAMI_Endpoint_create(client, tasks - 1, 0, &transfer.cmd.xfer_broadcast.root);
  transfer.cmd.xfer_broadcast.buf = (char *)&value;
  transfer.cmd.xfer_broadcast.type = PAMI_TYPE_SIGNED_INT;
  transfer.cmd.xfer_broadcast.typecount = 1;
  collective(world, PAMI_XFER_BROADCAST, &transfer);
  check("a broadcast", value == 42);

  memset(&transfer, 0, sizeof transfer);
  int sum = 0, me = (int)task + 1;
  pami_scan_t *scan = &transfer.cmd.xfer_scan;
  scan->sndbuf = (char *)&me;
  scan->rcvbuf = (char *)&sum;
  scan->stype = scan->rtype = PAMI_TYPE_SIGNED_INT;
  scan->stypecount = scan->rtypecount = 1;
  scan->op = PAMI_DATA_SUM;
  collective(world, PAMI_XFER_SCAN, &transfer);
  check("a scan", sum == me * (me + 1) / 2);

  memset(&transfer, 0, sizeof transfer);
  int *blocks = malloc(2 * tasks * sizeof *blocks), *got = blocks + tasks;
  for (size_t i = 0; i < tasks; i++) blocks[i] = (int)(100 * task + i);
  pami_alltoall_t *exchange = &transfer.cmd.xfer_alltoall;
  exchange->sndbuf = (char *)blocks;
  exchange->rcvbuf = (char *)got;
  exchange->stype = exchange->rtype = PAMI_TYPE_SIGNED_INT;
  exchange->stypecount = exchange->rtypecount = 1;
  collective(world, PAMI_XFER_ALLTOALL, &transfer);
  int right = 1;
  for (size_t i = 0; i < tasks; i++) right = right && got[i] == (int)(100 * i + task);
  check("an alltoall", right);

  memset(&transfer, 0, sizeof transfer);
  size_t *counts = malloc(2 * tasks * sizeof *counts), *places = counts + tasks, total = 0;
  for (size_t i = 0; i < tasks; i++) {
    counts[i] = i;
    places[i] = total;
    total += i;
  }
  int *all = malloc((total + 1) * sizeof *all);
  for (size_t i = 0; i < tasks; i++) blocks[i] = (int)task;
  pami_gatherv_t *uneven = &transfer.cmd.xfer_gatherv;
  PAMI_Endpoint_create(client, 0, 0, &uneven->root);
  uneven->sndbuf = (char *)blocks;
  uneven->stype = uneven->rtype = PAMI_TYPE_SIGNED_INT;
  uneven->stypecount = task;
  uneven->rcvbuf = (char *)all;
  uneven->rtypecounts = counts;
  uneven->rdispls = places;
  collective(world, PAMI_XFER_GATHERV, &transfer);
  right = 1;
  for (size_t i = 0; task == 0 && i < tasks; i++)
    for (size_t j = 0; j < i; j++) right = right && all[places[i] + j] == (int)i;
  check("blocks of several lengths", right);
  free(all);
  free(counts);
  free(blocks);

  /* The even tasks alone. */
  pami_task_t *list = malloc(tasks * sizeof *list);
  size_t members = 0;
  for (size_t i = 0; i < tasks; i += 2) list[members++] = i;
  pami_geometry_t evens = PAMI_GEOMETRY_NULL, range = PAMI_GEOMETRY_NULL;
  volatile int made = 0;
  MUST(PAMI_Geometry_create_tasklist(client, 0, NULL, 0, task % 2 == 0 ? &evens : NULL, world, 1, list, members, context,
                                     count, (void *)&made));
  wait_for(&made, 1);
  int number = 1, found = 0;
  if (evens != PAMI_GEOMETRY_NULL) {
    reduce(evens, &number, &found, PAMI_TYPE_SIGNED_INT, 1, PAMI_DATA_SUM);
    MUST(PAMI_Geometry_destroy(client, &evens, context, count, (void *)&made));
    wait_for(&made, 2);
  }
  check("a geometry of some tasks", (task % 2 == 0 ? found == (int)members : found == 0) && evens == PAMI_GEOMETRY_NULL);
  pami_geometry_range_t slice = {0, tasks - 1};
  MUST(PAMI_Geometry_create_taskrange(client, 0, NULL, 0, &range, world, 2, &slice, 1, context, NULL, NULL));
  reduce(range, &number, &found, PAMI_TYPE_SIGNED_INT, 1, PAMI_DATA_SUM);
  check("a geometry of a range", found == (int)tasks);
  free(list);
}

/* How many of the calls below have said the right thing. */
static int refusals, refused;

/* Whether a call is refused, with a text that ends with "NULL" behind the argument's name. */
static void refuses(pami_result_t result, const char *name) {
  char text[200], end[100];
  size_t length = PAMI_Error_text(text, sizeof text);
  int wanted = snprintf(end, sizeof end, ": %s is NULL", name);
  refusals++;
  if (result == PAMI_INVAL && length > (size_t)wanted && strcmp(text + length - wanted, end) == 0) refused++;
  else fprintf(stderr, "%s: %d, %s\n", name, result, text);
}

/* NULL in place of a pointer that is needed: nothing is written to address 0. */
static void nulls(void) {
  pami_task_t of;
  size_t number;
  pami_memregion_t region;
  pami_geometry_t geometry;
  int value = 0;
  refuses(PAMI_Client_create("test", NULL, NULL, 0), "client");
  refuses(PAMI_Client_destroy(NULL), "client");
  refuses(PAMI_Client_query(client, NULL, 1), "settings");
  refuses(PAMI_Context_createv(client, NULL, 0, NULL, 1), "contexts");
  refuses(PAMI_Context_destroyv(NULL, 1), "contexts");
  refuses(PAMI_Context_query(context, NULL, 1), "settings");
  refuses(PAMI_Context_advancev(NULL, 1, 1), "contexts");
  refuses(PAMI_Endpoint_create(client, 0, 0, NULL), "endpoint");
  refuses(PAMI_Endpoint_query(next, NULL, &number), "task");
  refuses(PAMI_Endpoint_query(next, &of, NULL), "offset");
  refuses(PAMI_Purge(context, NULL, 1), "endpoints");
  refuses(PAMI_Dispatch_query(context, 2, NULL, 1), "settings");
  refuses(PAMI_Send(context, NULL), "parameters");
  refuses(PAMI_Put(context, NULL), "parameters");
  refuses(PAMI_Memregion_create(context, NULL, 8, &number, &region), "address");
  refuses(PAMI_Memregion_create(context, &value, 4, NULL, &region), "granted");
  refuses(PAMI_Memregion_create(context, &value, 4, &number, NULL), "region");
  refuses(PAMI_Memregion_destroy(context, NULL), "region");
  refuses(PAMI_Geometry_world(client, NULL), "geometry");
  refuses(PAMI_Geometry_create_tasklist(client, 0, NULL, 0, &geometry, world, 1, NULL, 1, context, NULL, NULL), "tasks");
  of = task;
  refuses(PAMI_Geometry_create_tasklist(client, 0, NULL, 0, NULL, world, 1, &of, 1, context, NULL, NULL), "geometry");
  refuses(PAMI_Geometry_destroy(client, NULL, context, NULL, NULL), "geometry");
  refuses(PAMI_Geometry_query(world, NULL, 1), "settings");
  refuses(PAMI_Geometry_algorithms_num(world, PAMI_XFER_BARRIER, NULL), "counts");
  refuses(PAMI_Geometry_algorithms_query(world, PAMI_XFER_BARRIER, NULL, NULL, 1, NULL, NULL, 0), "always");
  refuses(PAMI_Collective(context, NULL), "transfer");

  pami_send_immediate_t ask = {.dispatch = 2, .dest = next};
  ask.header.iov_len = 4;
  refuses(PAMI_Send_immediate(context, &ask), "header.iov_base");
  pami_send_t send = {.send = ask};
  send.send.header.iov_len = 0;
  send.send.data.iov_len = 4;
  refuses(PAMI_Send(context, &send), "send.data.iov_base");
  pami_endpoint_t here;
  MUST(PAMI_Endpoint_create(client, task, 0, &here));
  pami_put_simple_t put = {0};
  put.rma.dest = here;
  put.rma.bytes = 4;
  put.addr.local = &value;
  refuses(PAMI_Put(context, &put), "addr.remote");
  put.addr.remote = &value;
  put.addr.local = NULL;
  refuses(PAMI_Put(context, &put), "addr.local");
  pami_rget_simple_t rget = {0};
  rget.rma.dest = next;
  rget.rma.bytes = 4;
  refuses(PAMI_Rget(context, &rget), "rdma.local.mr");
  rget.rdma.local.mr = &region;
  refuses(PAMI_Rget(context, &rget), "rdma.remote.mr");
  pami_rmw_t add = {.dest = here, .operation = PAMI_ATOMIC_FETCH_ADD, .type = PAMI_TYPE_SIGNED_INT};
  refuses(PAMI_Rmw(context, &add), "remote");
  add.remote = &value;
  refuses(PAMI_Rmw(context, &add), "value");
  add.value = &value;
  refuses(PAMI_Rmw(context, &add), "local");
  pami_xfer_t transfer = {.algorithm = first_of(world, PAMI_XFER_ALLREDUCE)};
  pami_allreduce_t *sum = &transfer.cmd.xfer_allreduce;
  sum->stype = sum->rtype = PAMI_TYPE_SIGNED_INT;
  sum->stypecount = sum->rtypecount = 1;
  sum->op = PAMI_DATA_SUM;
  refuses(PAMI_Collective(context, &transfer), "sndbuf");
  sum->sndbuf = (char *)&value;
  refuses(PAMI_Collective(context, &transfer), "rcvbuf");
  memset(&transfer, 0, sizeof transfer);
  transfer.algorithm = first_of(world, PAMI_XFER_ALLGATHERV_INT);
  transfer.cmd.xfer_allgatherv_int.sndbuf = (char *)&value;
  transfer.cmd.xfer_allgatherv_int.rcvbuf = (char *)&value;
  transfer.cmd.xfer_allgatherv_int.stype = transfer.cmd.xfer_allgatherv_int.rtype = PAMI_TYPE_SIGNED_INT;
  refuses(PAMI_Collective(context, &transfer), "rtypecounts");
  /* Without bytes, none of them is needed. */
  put.rma.bytes = 0;
  put.addr.remote = NULL;
  MUST(PAMI_Put(context, &put));
  MUST(PAMI_Client_query(client, NULL, 0));
  check("NULL is refused by the argument's name", refused == refusals && PAMI_Error_text(NULL, 10) == 0);
}

int main(void) {
  double start = PAMI_Wtime(NULL);
  MUST(PAMI_Client_create("test", &client, NULL, 0));
  MUST(PAMI_Context_createv(client, NULL, 0, &context, 1));
  MUST(PAMI_Geometry_world(client, &world));
  task = attribute(PAMI_CLIENT_TASK_ID);
  tasks = attribute(PAMI_CLIENT_NUM_TASKS);
  MUST(PAMI_Endpoint_create(client, (task + 1) % tasks, 0, &next));

  pami_configuration_t tick = {.name = PAMI_CLIENT_WTICK}, local = {.name = PAMI_CLIENT_LOCAL_TASKS};
  MUST(PAMI_Client_query(client, &tick, 1));
  MUST(PAMI_Client_query(client, &local, 1));
  size_t locals = attribute(PAMI_CLIENT_NUM_LOCAL_TASKS);
  int is_local = 0;
  for (size_t i = 0; i < locals; i++) is_local = is_local || local.value.intarray[i] == task;
  check("attributes", is_local && tick.value.doubleval > 0 && tick.value.doubleval < 0.01 &&
                          attribute(PAMI_CLIENT_MEMREGION_SIZE) == sizeof(pami_memregion_t) &&
                          attribute(PAMI_CONTEXT_DISPATCH_ID_MAX) > 100 &&
                          PAMI_Client_update(client, &tick, 1) == PAMI_INVAL);
  messages();
  one_sided();
  geometries();
  nulls();

  pami_work_t storage;
  int cookie = 5;
  MUST(PAMI_Context_post(context, &storage, work, &cookie));
  int before = runs;
  while (runs < 3) PAMI_Context_advance(context, 1);
  for (int i = 0; i < 3; i++) PAMI_Context_advance(context, 1);
  check("posted work runs until it is done", before == 0 && runs == 3);

  MUST(PAMI_Context_lock(context));
  MUST(PAMI_Context_unlock(context));
  if (tasks > 1) {
    pami_result_t result;
    while ((result = PAMI_Purge(context, &next, 1)) == PAMI_EAGAIN) PAMI_Context_advance(context, 1);
    MUST(result);
    while ((result = PAMI_Resume(context, &next, 1)) == PAMI_EAGAIN) PAMI_Context_advance(context, 1);
    MUST(result);
  }
  pami_send_immediate_t ask = {.dispatch = 2, .dest = next};
  ask.header = (struct iovec){"head", 4};
  ask.data = (struct iovec){"payload", 7};
  MUST(PAMI_Send_immediate(context, &ask));
  wait_for(&answered, 2);
  check("messages go on behind purge and resume", answered == 2);
  check("extensions are refused", PAMI_Extension_open(client, "EXT_torus", NULL) == PAMI_UNIMPL);
  check("time goes by", PAMI_Wtime(client) > start);
  barrier();
  MUST(PAMI_Context_destroyv(&context, 1));
  MUST(PAMI_Client_destroy(&client));
  return client == PAMI_CLIENT_NULL && context == PAMI_CONTEXT_NULL ? 0 : 4;
}
