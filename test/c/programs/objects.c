// Matched probes, groups, infos, attributes, error handlers, types and requests of MPI: every rank checks.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void rule(const char *name, int is_kept) {
  int all = 0;
  MPI_Reduce(&is_kept, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %d of %d\n", name, all, size);
}

/* A message that was found is no one else's, short or long. */
static int matched_probes(void) {
  enum { LONG = 20000 };
  int next = (rank + 1) % size, before = (rank + size - 1) % size, is_kept = 1, flag = 0, count, in[2] = {0}, token = 10 * rank;
  int *far = malloc(LONG * sizeof(int)), *near = malloc(LONG * sizeof(int));
  for (int i = 0; i < LONG; i++) far[i] = rank + i;
  MPI_Request requests[3], receive;
  MPI_Message message, nothing;
  MPI_Status status;
  MPI_Isend(&token, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(far, LONG, MPI_INT, next, 6, MPI_COMM_WORLD, &requests[1]);
  MPI_Issend(&rank, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &requests[2]);
  MPI_Mprobe(before, 5, MPI_COMM_WORLD, &message, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  is_kept &= count == 1 && status.MPI_SOURCE == before && status.MPI_TAG == 5;
  /* The second of this tag, which another receive gets. */
  MPI_Recv(&in[1], 1, MPI_INT, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Mrecv(&in[0], 1, MPI_INT, &message, &status);
  is_kept &= in[0] == 10 * before && in[1] == before && message == MPI_MESSAGE_NULL && status.MPI_TAG == 5;
  while (!flag) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
  MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &nothing, MPI_STATUS_IGNORE);
  MPI_Get_count(&status, MPI_INT, &count);
  is_kept &= !flag && count == LONG && status.MPI_TAG == 6;
  MPI_Imrecv(near, LONG, MPI_INT, &message, &receive);
  MPI_Wait(&receive, &status);
  is_kept &= near[0] == before && near[LONG - 1] == before + LONG - 1 && status.MPI_SOURCE == before;
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  MPI_Mprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &message, &status);
  is_kept &= message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL;
  MPI_Mrecv(in, 1, MPI_INT, &message, &status);
  is_kept &= status.MPI_SOURCE == MPI_PROC_NULL;
  MPI_Probe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &status);
  is_kept &= status.MPI_SOURCE == MPI_PROC_NULL;
  free(far), free(near);
  return is_kept;
}

/* The last rank does not take part. */
static int groups_alone(void) {
  MPI_Group world, most;
  MPI_Comm made, node;
  int is_kept = 1, last = size - 1, sum = 0, node_size, node_rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_excl(world, size > 1, &last, &most);
  if (rank != last || size == 1) {
    MPI_Comm_create_group(MPI_COMM_WORLD, most, 3, &made);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made);
    is_kept &= sum == (size - 1) * (size - 2) / 2;
    MPI_Comm_free(&made);
  }
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &node_size);
  MPI_Comm_rank(node, &node_rank);
  is_kept &= node_size >= 1 && node_size <= size && node_rank < node_size;
  MPI_Comm_free(&node);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &node);
  is_kept &= node == MPI_COMM_NULL;
  MPI_Group_free(&world), MPI_Group_free(&most);
  return is_kept;
}

static int duplicates(void) {
  MPI_Comm copy, other;
  MPI_Request request;
  char name[MPI_MAX_OBJECT_NAME];
  int length, is_kept = 1, sum = 0;
  MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copy);
  is_kept &= sum == size * (size - 1) / 2;
  MPI_Comm_set_name(copy, "a copy");
  MPI_Comm_get_name(copy, name, &length);
  is_kept &= strcmp(name, "a copy") == 0 && length == 6;
  MPI_Comm_dup_with_info(copy, MPI_INFO_NULL, &other);
  MPI_Comm_get_name(other, name, &length);
  is_kept &= length == 0;
  MPI_Barrier(other);
  MPI_Comm_disconnect(&other);
  is_kept &= other == MPI_COMM_NULL;
  MPI_Comm_get_parent(&other);
  is_kept &= other == MPI_COMM_NULL;
  MPI_Comm_free(&copy);
  return is_kept;
}

static int infos(void) {
  MPI_Info info, copy;
  char text[MPI_MAX_INFO_VAL + 1];
  int flag, count, length, is_kept = 1;
  MPI_Info_create(&info);
  MPI_Info_set(info, "color", "red");
  MPI_Info_set(info, "shape", "round");
  MPI_Info_set(info, "color", "green");
  MPI_Info_get_nkeys(info, &count);
  MPI_Info_get_nthkey(info, 0, text);
  is_kept &= count == 2 && strcmp(text, "color") == 0;
  MPI_Info_get_valuelen(info, "color", &length, &flag);
  is_kept &= flag && length == 5;
  MPI_Info_get(info, "color", 20, text, &flag);
  is_kept &= flag && strcmp(text, "green") == 0;
  MPI_Info_get(info, "size", 20, text, &flag);
  is_kept &= !flag;
  MPI_Info_dup(info, &copy);
  MPI_Info_delete(info, "color");
  MPI_Info_get_nkeys(info, &count);
  is_kept &= count == 1;
  MPI_Info_get_nkeys(copy, &count);
  is_kept &= count == 2;
#if MPI_VERSION >= 4
  length = 3;
  MPI_Info_get_string(copy, "color", &length, text, &flag);
  is_kept &= flag && length == 6 && strcmp(text, "gr") == 0;
#endif
  MPI_Info_free(&info), MPI_Info_free(&copy);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Info_create(&info);
  int code = MPI_Info_delete(info, "none"), kind;
  MPI_Error_class(code, &kind);
  is_kept &= kind == MPI_ERR_INFO_NOKEY && info != MPI_INFO_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Info_free(&info);
  return is_kept && info == MPI_INFO_NULL;
}

static int copied, deleted;

static int copy_one(MPI_Comm comm, int key, void *state, void *value, void *copy, int *flag) {
  copied += *(int *)state;
  *(void **)copy = (char *)value + 1;
  *flag = 1;
  (void)comm, (void)key;
  return MPI_SUCCESS;
}

static int delete_one(MPI_Comm comm, int key, void *value, void *state) {
  deleted += *(int *)state;
  (void)comm, (void)key, (void)value;
  return MPI_SUCCESS;
}

static int attributes(void) {
  static int step = 10;
  static char place[8];
  int kept, same, none, flag, is_kept = 1, *limit;
  char *value;
  MPI_Comm copy;
  copied = deleted = 0;
  MPI_Comm_create_keyval(copy_one, delete_one, &kept, &step);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &same, NULL);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &none, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, kept, place);
  MPI_Comm_set_attr(MPI_COMM_WORLD, same, place + 3);
  MPI_Comm_set_attr(MPI_COMM_WORLD, none, place + 4);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_get_attr(copy, kept, &value, &flag);
  is_kept &= flag && value == place + 1 && copied == 10;
  MPI_Comm_get_attr(copy, same, &value, &flag);
  is_kept &= flag && value == place + 3;
  MPI_Comm_get_attr(copy, none, &value, &flag);
  is_kept &= !flag;
  MPI_Comm_free(&copy);
  is_kept &= deleted == 10;
  MPI_Comm_delete_attr(MPI_COMM_WORLD, kept);
  is_kept &= deleted == 20;
  MPI_Comm_get_attr(MPI_COMM_WORLD, kept, &value, &flag);
  is_kept &= !flag;
  MPI_Comm_delete_attr(MPI_COMM_WORLD, same), MPI_Comm_delete_attr(MPI_COMM_WORLD, none);
  MPI_Comm_free_keyval(&kept), MPI_Comm_free_keyval(&same), MPI_Comm_free_keyval(&none);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &flag);
  is_kept &= flag && *limit >= 32767;
  return is_kept && kept == MPI_KEYVAL_INVALID;
}

static int handled;

static void handler(MPI_Comm *comm, int *code, ...) {
  int kind;
  MPI_Error_class(*code, &kind);
  handled += kind == MPI_ERR_RANK && *comm == MPI_COMM_WORLD;
}

static int error_handlers(void) {
  MPI_Errhandler own, got;
  int is_kept = 1, kind, code, length;
  char text[MPI_MAX_ERROR_STRING];
  handled = 0;
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got);
  is_kept &= got == own;
  MPI_Error_class(MPI_Send(&rank, 1, MPI_INT, size + 7, 0, MPI_COMM_WORLD), &kind);
  is_kept &= kind == MPI_ERR_RANK && handled == 1;
  MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_RANK);
  is_kept &= handled == 2;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&own);
  MPI_Add_error_class(&kind);
  MPI_Add_error_code(kind, &code);
  MPI_Add_error_string(code, "out of tea");
  MPI_Error_string(code, text, &length);
  is_kept &= kind > MPI_ERR_LASTCODE && strcmp(text, "out of tea") == 0 && length == 10;
  int found;
  MPI_Error_class(code, &found);
  return is_kept && found == kind && own == MPI_ERRHANDLER_NULL;
}

struct mixed {
  int number;
  double value;
};

static int elements(void) {
  MPI_Datatype parts, pair;
  MPI_Status status;
  char name[MPI_MAX_OBJECT_NAME], data[64];
  int count, length, is_kept = 1;
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &parts);
  MPI_Type_commit(&parts);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  /* An int, a double, and an int: 16 bytes. */
  memset(data, 0, sizeof data);
  MPI_Sendrecv(data, 16, MPI_BYTE, rank, 1, data + 32, 2, parts, rank, 1, MPI_COMM_WORLD,
               &status);
  MPI_Get_elements(&status, parts, &count);
  is_kept &= count == 3;
  MPI_Get_count(&status, parts, &count);
  is_kept &= count == MPI_UNDEFINED;
  MPI_Get_elements(&status, pair, &count);
  is_kept &= count == 4;
  MPI_Status_set_elements(&status, parts, 5);
  MPI_Get_elements(&status, parts, &count);
  is_kept &= count == 5;
  MPI_Status_set_cancelled(&status, 1);
  MPI_Test_cancelled(&status, &count);
  is_kept &= count == 1;
  MPI_Type_set_name(parts, "mixed");
  MPI_Type_get_name(parts, name, &length);
  is_kept &= strcmp(name, "mixed") == 0;
  MPI_Type_get_name(MPI_INT, name, &length);
  is_kept &= strcmp(name, "MPI_INT") == 0 && length == 7;
  MPI_Type_free(&parts), MPI_Type_free(&pair);
  return is_kept;
}

static int contents(void) {
  MPI_Datatype inner, outer, got[2];
  int integers, addresses, types, combiner, numbers[8], is_kept = 1;
  MPI_Aint places[4];
  MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &inner);
  MPI_Type_create_hindexed(2, (int[]){1, 2}, (MPI_Aint[]){0, 400}, inner, &outer);
  MPI_Type_get_envelope(outer, &integers, &addresses, &types, &combiner);
  is_kept &= integers == 3 && addresses == 2 && types == 1 && combiner == MPI_COMBINER_HINDEXED;
  MPI_Type_get_contents(outer, 3, 2, 1, numbers, places, got);
  is_kept &= numbers[0] == 2 && numbers[1] == 1 && numbers[2] == 2 && places[1] == 400;
  MPI_Type_get_envelope(got[0], &integers, &addresses, &types, &combiner);
  is_kept &= integers == 3 && addresses == 0 && types == 1 && combiner == MPI_COMBINER_VECTOR;
  MPI_Type_get_contents(got[0], 3, 0, 1, numbers, places, got + 1);
  is_kept &= numbers[0] == 3 && numbers[1] == 2 && numbers[2] == 4 && got[1] == MPI_DOUBLE;
  MPI_Type_get_envelope(MPI_INT, &integers, &addresses, &types, &combiner);
  is_kept &= combiner == MPI_COMBINER_NAMED && integers == 0;
  MPI_Type_free(&got[0]), MPI_Type_free(&inner), MPI_Type_free(&outer);
  return is_kept;
}

/* A matrix of 5 x 7, in blocks and by turns, is whole once all parts are in it. */
/* The bytes of all machines: big-endian, without gaps. */
static int external(void) {
  static char name[] = "external32";
  struct { char letter; double number; short few[2]; } own[2] = {{'a', 1.5, {-2, 258}}, {'b', -3, {7, -1}}}, back[2];
  double pair[2] = {1, -2}, turned[2];
  unsigned char packed[64];
  MPI_Aint size = -1, at = 0, from = 0, places[3] = {0, (char *)&own->number - (char *)own, (char *)own->few - (char *)own};
  int lengths[3] = {1, 1, 2}, is_kept = 1;
  MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, parts, whole;
  MPI_Type_create_struct(3, lengths, places, types, &parts);
  MPI_Type_create_resized(parts, 0, sizeof own[0], &whole);
  MPI_Type_commit(&whole);
  MPI_Pack_external_size(name, 2, whole, &size);
  is_kept &= size == 26;
  MPI_Pack_external(name, own, 2, whole, packed, sizeof packed, &at);
  const unsigned char first[] = {'a', 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 1, 2, 'b', 0xc0, 8};
  is_kept &= at == 26 && memcmp(packed, first, sizeof first) == 0 && packed[24] == 0xff && packed[25] == 0xff;
  MPI_Pack_external(name, pair, 1, MPI_C_DOUBLE_COMPLEX, packed, sizeof packed, &at);
  is_kept &= at == 42 && packed[26] == 0x3f && packed[27] == 0xf0 && packed[34] == 0xc0 && packed[35] == 0;
  memset(back, 0, sizeof back);
  MPI_Unpack_external(name, packed, at, &from, back, 2, whole);
  MPI_Unpack_external(name, packed, at, &from, turned, 1, MPI_C_DOUBLE_COMPLEX);
  is_kept &= from == 42 && turned[0] == 1 && turned[1] == -2 && back[1].number == -3 && back[1].few[1] == -1;
  is_kept &= back[0].letter == 'a' && back[0].number == 1.5 && back[0].few[0] == -2 && back[0].few[1] == 258;
#ifdef __wasm__
  /* An address has eight bytes there, a wide character two, and a pair is two numbers. */
  MPI_Aint address = -5, other = 0;
  struct { double value; int index; } place = {0.5, 3}, read;
  at = from = 0;
  MPI_Pack_external(name, &address, 1, MPI_AINT, packed, sizeof packed, &at);
  is_kept &= at == 8 && packed[0] == 0xff && packed[7] == 0xfb;
  MPI_Pack_external(name, &place, 1, MPI_DOUBLE_INT, packed, sizeof packed, &at);
  is_kept &= at == 20 && packed[8] == 0x3f && packed[9] == 0xe0 && packed[19] == 3;
  MPI_Unpack_external(name, packed, at, &from, &other, 1, MPI_AINT);
  MPI_Unpack_external(name, packed, at, &from, &read, 1, MPI_DOUBLE_INT);
  is_kept &= other == -5 && read.value == 0.5 && read.index == 3;
  MPI_Pack_external_size(name, 3, MPI_WCHAR, &size);
  is_kept &= size == 6;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  is_kept &= MPI_Pack_external_size("native", 1, MPI_INT, &size) == MPI_ERR_ARG;
  is_kept &= MPI_Pack_external(name, own, 5, MPI_INT, packed, 20, &at) == MPI_ERR_TRUNCATE && at == 20;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
#endif
  MPI_Type_match_size(MPI_TYPECLASS_REAL, sizeof(double), &types[0]);
  MPI_Type_match_size(MPI_TYPECLASS_INTEGER, sizeof(short), &types[1]);
  MPI_Type_size(types[0], &lengths[0]), MPI_Type_size(types[1], &lengths[1]);
  is_kept &= lengths[0] == sizeof(double) && lengths[1] == sizeof(short);
  MPI_Type_free(&parts), MPI_Type_free(&whole);
  return is_kept;
}

static int distributed_arrays(void) {
  enum { ROWS = 5, COLUMNS = 7 };
  int is_kept = 1, seen[ROWS * COLUMNS] = {0}, ranks = 6, grid[2] = {2, 3};
  for (int order = 0; order < 2; order++) {
    memset(seen, 0, sizeof seen);
    for (int r = 0; r < ranks; r++) {
      MPI_Datatype type;
      int bytes, position = 0, matrix[ROWS * COLUMNS], packed[ROWS * COLUMNS];
      MPI_Aint low, extent;
      MPI_Type_create_darray(ranks, r, 2, (int[]){ROWS, COLUMNS}, (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
                             (int[]){MPI_DISTRIBUTE_DFLT_DARG, 2}, grid, order ? MPI_ORDER_FORTRAN : MPI_ORDER_C, MPI_INT, &type);
      MPI_Type_commit(&type);
      MPI_Type_size(type, &bytes);
      MPI_Type_get_extent(type, &low, &extent);
      is_kept &= low == 0 && extent == sizeof matrix;
      for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = i;
      MPI_Pack(matrix, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD);
      for (int i = 0; i < bytes / (int)sizeof(int); i++) {
        int row = order ? packed[i] % ROWS : packed[i] / COLUMNS, column = order ? packed[i] / ROWS : packed[i] % COLUMNS;
        seen[packed[i]]++;
        is_kept &= row / 3 == r / 3 && column / 2 % 3 == r % 3;
      }
      MPI_Type_free(&type);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++) is_kept &= seen[i] == 1;
  }
  return is_kept;
}

static void halves(void *in, void *inout, int *length, MPI_Datatype *type) {
  for (int i = 0; i < *length; i++) ((double *)inout)[i] = ((double *)in)[i] + ((double *)inout)[i] / 2;
  (void)type;
}

static int local_reductions(void) {
  int a[3] = {1, 5, 3}, b[3] = {4, 2, 9}, commutes, is_kept = 1;
  struct { double value; int index; } here = {2, 7}, best = {2, 3};
  double x[2] = {1, 2}, y[2] = {4, 8};
  MPI_Op op;
  MPI_Reduce_local(a, b, 3, MPI_INT, MPI_MAX);
  is_kept &= b[0] == 4 && b[1] == 5 && b[2] == 9;
  MPI_Reduce_local(&here, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC);
  is_kept &= best.index == 3;
  MPI_Op_create(halves, 0, &op);
  MPI_Reduce_local(x, y, 2, MPI_DOUBLE, op);
  MPI_Op_commutative(op, &commutes);
  is_kept &= y[0] == 3 && y[1] == 6 && !commutes;
  MPI_Op_free(&op);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int kind;
  MPI_Error_class(MPI_Allreduce(x, y, 2, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD), &kind);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  return is_kept && kind == MPI_ERR_OP;
}

static int queried, released, canceled;

static int query(void *state, MPI_Status *status) {
  queried++;
  MPI_Status_set_elements(status, MPI_INT, *(int *)state);
  MPI_Status_set_cancelled(status, canceled > 0);
  status->MPI_SOURCE = rank;
  status->MPI_TAG = 4;
  return MPI_SUCCESS;
}

static int release(void *state) {
  (void)state;
  released++;
  return MPI_SUCCESS;
}

static int cancel(void *state, int is_complete) {
  (void)state;
  canceled += !is_complete;
  return MPI_SUCCESS;
}

static int requests_of_the_program(void) {
  MPI_Request request, same;
  MPI_Status status;
  int number = 3, flag, count, is_kept = 1;
  queried = released = canceled = 0;
  MPI_Grequest_start(query, release, cancel, &number, &request);
  MPI_Test(&request, &flag, &status);
  is_kept &= !flag && queried == 0;
  MPI_Grequest_complete(request);
  MPI_Wait(&request, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  is_kept &= request == MPI_REQUEST_NULL && count == 3 && status.MPI_TAG == 4 && queried == 1 && released == 1;
  MPI_Grequest_start(query, release, cancel, &number, &request);
  MPI_Cancel(&request);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &flag);
  is_kept &= flag && canceled == 1 && released == 2;
  MPI_Grequest_start(query, release, cancel, &number, &request);
  same = request;
  MPI_Request_free(&request);
  MPI_Grequest_complete(same);
  return is_kept && released == 3;
}

static int memory(void) {
  double *numbers;
  MPI_Alloc_mem(1000 * sizeof(double), MPI_INFO_NULL, &numbers);
  for (int i = 0; i < 1000; i++) numbers[i] = i;
  int is_kept = numbers[999] == 999;
  MPI_Free_mem(numbers);
  MPI_Aint place, far;
  char text[10];
  MPI_Get_address(text, &place);
  far = MPI_Aint_add(place, 7);
  return is_kept && (char *)far == text + 7 && MPI_Aint_diff(far, place) == 7;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rule("matched probes", matched_probes());
  rule("groups alone", groups_alone());
  rule("duplicates", duplicates());
  rule("infos", infos());
  rule("attributes", attributes());
  rule("error handlers", error_handlers());
  rule("elements", elements());
  rule("contents of types", contents());
  rule("the bytes of all machines", external());
  rule("distributed arrays", distributed_arrays());
  rule("local reductions", local_reductions());
  rule("requests of the program", requests_of_the_program());
  rule("memory", memory());
  MPI_Finalize();
  return 0;
}
