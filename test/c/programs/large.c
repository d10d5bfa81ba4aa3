// Buffers beyond 2 GiB, where pointers are negative numbers to the calls, and memory that grows while messages are under way.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG 1000000
#define BLOCK 1400000000u

static int rank, size;

static void check(const char *what, int right) {
  int all = 0;
  MPI_Reduce(&right, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %d of %d\n", what, all, size);
}

/* The volatile pointers keep clang from taking an unused malloc() to succeed. */
static void *grown(size_t bytes) {
  void *volatile place = malloc(bytes);
  if (place == NULL) {
    printf("no memory: %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  return place;
}

static void sum(void *in, void *out, int *count, MPI_Datatype *type) {
  (void)type;
  free(grown(200000));
  for (int i = 0; i < *count; i++) ((double *)out)[i] += ((double *)in)[i];
}

static int has(const int *of, int count, int value) {
  for (int i = 0; i < count; i++)
    if (of[i] != value + i) return 0;
  return 1;
}

static void fill(int *of, int count, int value) {
  for (int i = 0; i < count; i++) of[i] = value + i;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  void *low = grown(BLOCK);
  int *to = grown(BLOCK), *from = to + 2 * LONG;
  check("2.8 GB", low != (void *)to);

  for (int count = 10; count <= LONG; count *= 100000) {
    fill(to, count, 100 * rank);
    memset(from, 0, count * sizeof *from);
    MPI_Status status;
    int got = 0;
    MPI_Sendrecv(to, count, MPI_INT, next, 1, from, count, MPI_INT, before, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    check(count == 10 ? "short messages" : "long messages", has(from, count, 100 * before) && got == count);
  }

  MPI_Request requests[2];
  memset(from, 0, LONG * sizeof *from);
  MPI_Irecv(from, LONG, MPI_INT, before, 2, MPI_COMM_WORLD, &requests[0]);
  free(grown(300000000));
  MPI_Isend(to, LONG, MPI_INT, next, 2, MPI_COMM_WORLD, &requests[1]);
  free(grown(350000000));
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  check("memory that grows meanwhile", has(from, LONG, 100 * before));

  MPI_Allreduce(to, from, 1000, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  check("a reduction", has(from, 1000, 100 * (size - 1)));
  fill(from, LONG, rank == 0 ? 7 : 0);
  MPI_Bcast(from, LONG, MPI_INT, 0, MPI_COMM_WORLD);
  check("a broadcast", has(from, LONG, 7));
  MPI_Request request;
  fill(from, LONG, rank == 0 ? 9 : 0);
  MPI_Ibcast(from, LONG, MPI_INT, 0, MPI_COMM_WORLD, &request);
  free(grown(400000000));
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check("a broadcast in the background", has(from, LONG, 9));

  MPI_Op op;
  MPI_Op_create(sum, 1, &op);
  double *mine = (double *)to, *all = (double *)from;
  for (int i = 0; i < 10000; i++) mine[i] = rank + i, all[i] = 0;
  MPI_Allreduce(mine, all, 10000, MPI_DOUBLE, op, MPI_COMM_WORLD);
  int right = 1;
  for (int i = 0; i < 10000; i++) right &= all[i] == size * (size - 1) / 2.0 + (double)size * i;
  MPI_Op_free(&op);
  check("an operation of the program's own", right);

  int counts[16], places[16];
  for (int i = 0; i < size; i++) counts[i] = 2, places[i] = 3 * i;
  fill(to, 2, 10 * rank);
  for (int i = 0; i < 3 * size; i++) from[i] = -1;
  MPI_Allgatherv(to, 2, MPI_INT, from, counts, places, MPI_INT, MPI_COMM_WORLD);
  right = 1;
  for (int i = 0; i < size; i++) right &= has(from + 3 * i, 2, 10 * i) && from[3 * i + 2] == -1;
  check("blocks with gaps", right);

  MPI_Datatype type;
  MPI_Type_vector(1000, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  fill(to, 2000, 5 * rank);
  for (int i = 0; i < 2000; i++) from[i] = -1;
  MPI_Sendrecv(to, 1, type, next, 3, from, 1, type, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  right = 1;
  for (int i = 0; i < 2000; i++) right &= from[i] == (i % 2 == 0 && i < 2000 ? 5 * before + i : -1);
  check("vectors", right);
  int position = 0;
  MPI_Pack(to, 1, type, from, 4000, &position, MPI_COMM_WORLD);
  check("packing", position == 4000 && from[1] == 5 * rank + 2);
  position = 0;
  int *open = from + 1000;
  MPI_Unpack(from, 4000, &position, open, 1, type, MPI_COMM_WORLD);
  check("unpacking", open[0] == 5 * rank && open[2] == 5 * rank + 2);
  MPI_Type_free(&type);

  MPI_Aint address;
  int one = 1;
  MPI_Get_address(from, &address);
  MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Sendrecv(&rank, 1, MPI_INT, next, 4, MPI_BOTTOM, 1, type, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check("addresses from MPI_BOTTOM", from[0] == before);
  MPI_Type_free(&type);

  char *name = (char *)from;
  int length, flag, *tags;
  MPI_Get_processor_name(name, &length);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tags, &flag);
  check("names and attributes", strlen(name) == (size_t)length && flag && *tags >= 32767);
  MPI_Finalize();
}
