// Nonblocking collective operations of MPI, types with gaps in them, and types by member: every rank checks.
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

static int *numbers(int count, int value) {
  int *data = malloc((count + 1) * sizeof(int));
  for (int i = 0; i < count; i++) data[i] = value;
  return data;
}

/* Rank 0 begins its barrier only once the others, which have begun theirs, have sent a message. */
static int barrier_and_messages(void) {
  MPI_Request request;
  MPI_Status status;
  int flag, is_kept = 1, token = rank, sum = 0;
  if (rank == 0)
    for (int i = 1; i < size; i++) {
      MPI_Recv(&token, 1, MPI_INT, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      sum += token;
    }
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  if (rank != 0) {
    MPI_Test(&request, &flag, &status);
    is_kept &= !flag;
    MPI_Send(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
  } else is_kept &= sum == size * (size - 1) / 2;
  MPI_Wait(&request, &status);
  int count = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  return is_kept && request == MPI_REQUEST_NULL && count == 0;
}

static int broadcast_and_reductions(void) {
  enum { N = 20000 };
  int *data = numbers(N, rank == size - 1 ? 5 : 0), *in = numbers(N, rank), *sum = numbers(N, 0), *least = numbers(N, 9);
  int is_kept = 1;
  MPI_Request requests[3];
  MPI_Ibcast(data, N, MPI_INT, size - 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(in, sum, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Ireduce(in, least, N, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < N; i++) is_kept &= data[i] == 5 && sum[i] == size * (size - 1) / 2 && least[i] == (rank == 0 ? 0 : 9);
  MPI_Iallreduce(MPI_IN_PLACE, sum, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  is_kept &= sum[N - 1] == size * (size - 1) / 2;
  free(data), free(in), free(sum), free(least);
  return is_kept;
}

static int gathers_and_scatters(void) {
  int *all = numbers(2 * size, -1), *at_root = numbers(2 * size, -1), own[2] = {rank, rank * rank}, mine[2] = {0}, is_kept = 1;
  MPI_Request requests[2];
  MPI_Iallgather(own, 2, MPI_INT, all, 2, MPI_INT, MPI_COMM_WORLD, &requests[0]);
  MPI_Igather(own, 2, MPI_INT, at_root, 2, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
  for (int done = 0; done < 2; done++) {
    int index;
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    is_kept &= index == 0 || index == 1;
  }
  for (int i = 0; i < size; i++) is_kept &= all[2 * i + 1] == i * i && (rank != 0 || at_root[2 * i + 1] == i * i);
  MPI_Iscatter(at_root, 2, MPI_INT, mine, 2, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
  int *out = numbers(size, rank), *in = numbers(size, -1);
  MPI_Ialltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  is_kept &= mine[0] == rank && mine[1] == rank * rank;
  for (int i = 0; i < size; i++) is_kept &= in[i] == i;
  free(all), free(at_root), free(out), free(in);
  return is_kept;
}

static int uneven(void) {
  int *counts = malloc(size * sizeof(int)), *places = malloc(size * sizeof(int)), *ones = malloc(size * sizeof(int));
  int total = 0, is_kept = 1;
  for (int i = 0; i < size; i++) {
    counts[i] = i + 1;
    places[i] = total;
    total += i + 2;
    ones[i] = i;
  }
  int *own = numbers(rank + 1, 10 + rank), *all = numbers(total, -1), *at_root = numbers(total, -1), *mine = numbers(rank + 1, 0);
  MPI_Request requests[3];
  MPI_Iallgatherv(own, rank + 1, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD, &requests[0]);
  MPI_Igatherv(own, rank + 1, MPI_INT, at_root, counts, places, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < size; i++) is_kept &= all[places[i] + i] == 10 + i && all[places[i] + i + 1] == -1;
  if (rank == 0) is_kept &= memcmp(all, at_root, total * sizeof(int)) == 0;
  MPI_Iscatterv(at_root, counts, places, MPI_INT, mine, rank + 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
  /* One number for each, at its place. */
  int *each = numbers(size, 1), *out = numbers(size, rank), *in = numbers(size, -1);
  MPI_Ialltoallv(out, each, ones, MPI_INT, in, each, ones, MPI_INT, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i <= rank; i++) is_kept &= mine[i] == 10 + rank;
  for (int i = 0; i < size; i++) is_kept &= in[i] == i;
  free(counts), free(places), free(ones), free(own), free(all), free(at_root), free(mine), free(each), free(out), free(in);
  return is_kept;
}

static int scans(void) {
  int own = rank + 1, in = 0, ex = -1, block[2] = {0}, last = 0;
  int *vector = malloc(2 * size * sizeof(int)), *counts = numbers(size, 1);
  MPI_Request requests[4];
  for (int i = 0; i < 2 * size; i++) vector[i] = i + rank;
  MPI_Iscan(&own, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Iexscan(&own, &ex, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Ireduce_scatter_block(vector, block, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
  MPI_Ireduce_scatter(vector, &last, counts, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  int is_kept = in == (rank + 1) * (rank + 2) / 2 && ex == (rank == 0 ? -1 : rank * (rank + 1) / 2);
  for (int i = 0; i < 2; i++) is_kept &= block[i] == size * (2 * rank + i) + size * (size - 1) / 2;
  free(vector), free(counts);
  return is_kept && last == rank + size - 1;
}

/* More than a geometry has under way; blocking operations between them. */
static int many(void) {
  enum { MANY = 200 };
  MPI_Request requests[MANY];
  int in[MANY], out[MANY], is_kept = 1, sum = 0;
  MPI_Comm other;
  for (int i = 0; i < MANY; i++) {
    in[i] = i + rank;
    MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Barrier(other);
  MPI_Comm_free(&other);
  MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < MANY; i++) is_kept &= out[i] == size * i + size * (size - 1) / 2;
  return is_kept && sum == size * (size - 1) / 2;
}

struct sample {
  char kind;
  double value;
  int index;
};

static MPI_Datatype sample_type(void) {
  MPI_Datatype parts, whole;
  struct sample one = {0};
  MPI_Aint start, at[3];
  MPI_Get_address(&one, &start);
  MPI_Get_address(&one.kind, &at[0]);
  MPI_Get_address(&one.value, &at[1]);
  MPI_Get_address(&one.index, &at[2]);
  for (int i = 0; i < 3; i++) at[i] -= start;
  MPI_Type_create_struct(3, (int[]){1, 1, 1}, at, (MPI_Datatype[]){MPI_CHAR, MPI_DOUBLE, MPI_INT}, &parts);
  MPI_Type_create_resized(parts, 0, sizeof(struct sample), &whole);
  MPI_Type_free(&parts);
  MPI_Type_commit(&whole);
  return whole;
}

/* Keeps the larger value, and adds the indices. */
static void larger(void *in, void *inout, int *length, MPI_Datatype *type) {
  struct sample *a = in, *b = inout;
  MPI_Aint low, extent;
  MPI_Type_get_extent(*type, &low, &extent);
  for (int i = 0; i < *length; i++) {
    if (a[i].value > b[i].value) b[i].value = a[i].value, b[i].kind = a[i].kind;
    b[i].index += a[i].index + (extent != sizeof(struct sample));
  }
}

static int operations_of_the_user(void) {
  enum { N = 50 };
  MPI_Datatype type = sample_type();
  MPI_Op op;
  MPI_Request requests[2];
  struct sample in[N], out[N], all[N];
  int is_kept = 1;
  MPI_Op_create(larger, 1, &op);
  memset(out, 0x55, sizeof out);
  for (int i = 0; i < N; i++) in[i] = (struct sample){'a' + rank, (rank * 3 + i) % size, rank + i};
  MPI_Iallreduce(in, out, N, type, op, MPI_COMM_WORLD, &requests[0]);
  MPI_Iscan(in, all, N, type, op, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < N; i++) {
    double best = 0;
    for (int r = 0; r < size; r++) if ((r * 3 + i) % size > best) best = (r * 3 + i) % size;
    is_kept &= out[i].value == best && out[i].index == size * (size - 1) / 2 + size * i;
    is_kept &= all[i].index == rank * (rank + 1) / 2 + (rank + 1) * i;
    /* Padding of the buffer is no data. */
    is_kept &= ((char *)&out[i])[1] == 0x55;
  }
  memset(out, 0, sizeof out);
  MPI_Allreduce(in, out, N, type, op, MPI_COMM_WORLD);
  is_kept &= out[1].index == size * (size - 1) / 2 + size;
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  return is_kept;
}

/* Columns of a matrix: blocks of several lengths of a type with gaps. */
static int gaps(void) {
  MPI_Datatype column, narrow;
  int rows = 3, width = size, is_kept = 1;
  MPI_Type_vector(rows, 1, width, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &narrow);
  MPI_Type_commit(&narrow);
  int *matrix = numbers(rows * width, -1), *ones = numbers(size, 1), *places = malloc(size * sizeof(int)), own[3];
  for (int i = 0; i < rows; i++) own[i] = 100 * rank + i;
  for (int i = 0; i < size; i++) places[i] = size - 1 - i;
  MPI_Allgatherv(own, rows, MPI_INT, matrix, ones, places, narrow, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++)
    for (int j = 0; j < rows; j++) is_kept &= matrix[j * width + places[i]] == 100 * i + j;
  int back[3] = {0}, *counts = numbers(size, 1), *into = numbers(rows * width, -1);
  MPI_Request request;
  counts[0] = 0;
  MPI_Iscatterv(matrix, counts, places, narrow, back, rank == 0 ? 0 : rows, MPI_INT, size - 1, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  is_kept &= back[2] == (rank == 0 ? 0 : 100 * rank + 2);
  MPI_Gatherv(own, rank == 0 ? 0 : rows, MPI_INT, into, counts, places, narrow, 0, MPI_COMM_WORLD);
  if (rank == 0)
    for (int i = 0; i < size; i++) is_kept &= into[2 * width + places[i]] == (i == 0 ? -1 : 100 * i + 2);
  /* All columns to all, in reverse. */
  int *out = numbers(rows * width, 0);
  for (int i = 0; i < size; i++)
    for (int j = 0; j < rows; j++) out[j * width + i] = 1000 * rank + 10 * i + j;
  int *up = malloc(size * sizeof(int));
  for (int i = 0; i < size; i++) up[i] = i;
  MPI_Alltoallv(out, ones, up, narrow, into, ones, places, narrow, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++)
    for (int j = 0; j < rows; j++) is_kept &= into[j * width + places[i]] == 1000 * i + 10 * rank + j;
  free(matrix), free(ones), free(places), free(counts), free(into), free(out), free(up);
  MPI_Type_free(&column), MPI_Type_free(&narrow);
  return is_kept;
}

/* Even ranks get a column, odd ones a row; each type is that of the member. */
static int types_by_member(void) {
  MPI_Datatype column;
  int n = 4, is_kept = 1;
  MPI_Type_vector(n, 1, n, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Datatype *send_types = malloc(size * sizeof *send_types), *types = malloc(size * sizeof *types);
  int *send_counts = malloc(size * sizeof(int)), *counts = malloc(size * sizeof(int)), *send_places = malloc(size * sizeof(int)),
      *places = malloc(size * sizeof(int));
  int out[16], *in = numbers(16 * size, -1), *again = numbers(16 * size, -1);
  for (int i = 0; i < 16; i++) out[i] = 100 * rank + i;
  for (int i = 0; i < size; i++) {
    send_types[i] = i % 2 ? MPI_INT : column;
    send_counts[i] = i % 2 ? n : 1;
    send_places[i] = (i % 2 ? n : 1) * sizeof(int);
    types[i] = i % 2 ? column : MPI_INT;
    counts[i] = i % 2 ? 1 : n;
    places[i] = 16 * i * sizeof(int);
  }
  MPI_Alltoallw(out, send_counts, send_places, send_types, in, counts, places, types, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++)
    for (int j = 0; j < n; j++) {
      int want = 100 * i + (rank % 2 ? n + j : 1 + j * n);
      is_kept &= in[16 * i + (i % 2 ? j * n : j)] == want;
    }
  MPI_Request request;
  MPI_Ialltoallw(out, send_counts, send_places, send_types, again, counts, places, types, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  is_kept &= memcmp(in, again, 16 * size * sizeof(int)) == 0;
  free(send_types), free(types), free(send_counts), free(counts), free(send_places), free(places), free(in), free(again);
  MPI_Type_free(&column);
  return is_kept;
}

/* Requests that begin the same operations anew. MPI 3 has none. */
static int persistent(void) {
  int is_kept = 1;
#if MPI_VERSION >= 4
  int value = 0, sum = 0, *all = numbers(size, -1);
  MPI_Request requests[3];
  MPI_Allreduce_init(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Allgather_init(&value, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  for (int round = 0; round < 3; round++) {
    value = rank + round;
    MPI_Startall(3, requests);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    is_kept &= sum == size * (size - 1) / 2 + size * round && all[size - 1] == size - 1 + round;
  }
  for (int i = 0; i < 3; i++) MPI_Request_free(&requests[i]);
  is_kept &= requests[0] == MPI_REQUEST_NULL;
  free(all);
#endif
  return is_kept;
}

/* A communicator goes once its operations are over. Open MPI 4.1.4 crashes. */
static int freed(void) {
  int is_kept = 1;
#ifndef OPEN_MPI
  for (int i = 0; i < 20; i++) {
    MPI_Comm comm;
    MPI_Request requests[2];
    int sum = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (i % 2) MPI_Barrier(comm);
    for (double end = MPI_Wtime() + (rank == i % size ? 0.005 : 0); MPI_Wtime() < end;) continue;
    MPI_Iallreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Ibarrier(comm, &requests[1]);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    is_kept &= sum == i * size;
  }
#endif
  return is_kept;
}

/* A send and a receive as one request. MPI 3 has none. */
static int sends_and_receives(void) {
  int is_kept = 1;
#if MPI_VERSION >= 4
  enum { LONG = 30000 };
  int next = (rank + 1) % size, before = (rank + size - 1) % size, token = rank, *out = numbers(LONG, rank), *in = numbers(LONG, -1);
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Isendrecv(out, LONG, MPI_INT, next, 1, in, LONG, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isendrecv_replace(&token, 1, MPI_INT, before, 2, next, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, statuses);
  is_kept &= in[0] == before && in[LONG - 1] == before && statuses[0].MPI_SOURCE == before && statuses[0].MPI_TAG == 1;
  is_kept &= token == next && statuses[1].MPI_TAG == 2;
  free(out), free(in);
#endif
  return is_kept;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rule("barrier and messages", barrier_and_messages());
  rule("broadcast and reductions", broadcast_and_reductions());
  rule("gather and scatter", gathers_and_scatters());
  rule("blocks of several lengths", uneven());
  rule("scans", scans());
  rule("many at once", many());
  rule("operations of the user", operations_of_the_user());
  rule("types with gaps", gaps());
  rule("types by member", types_by_member());
  rule("persistent operations", persistent());
  rule("freed before the end", freed());
  rule("sends and receives", sends_and_receives());
  MPI_Finalize();
  return 0;
}
