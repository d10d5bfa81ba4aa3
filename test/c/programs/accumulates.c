// Accumulates of MPI: no change of any rank is lost. Every rank checks, and rank 0 prints how many agree. Same output by any MPI.
#include <complex.h>
#include <math.h>
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

static int next(void) { return (rank + 1) % size; }

enum { BYTES = 4096 };
static void *memory;
static MPI_Win win;

static void open_window(int unit) {
  MPI_Win_allocate(BYTES, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memset(memory, 0, BYTES);
  MPI_Win_fence(0, win);
}

/* All ranks add to all ranks, each element many times. */
#define SUMS(name, ROUNDS, TYPE, MPI_TYPE)                                                                 \
  static int name(void) {                                                                             \
    enum { COUNT = 20 };                                                                              \
    TYPE own[COUNT];                                                                                  \
    int is_kept = 1;                                                                                  \
    open_window(sizeof(TYPE));                                                                        \
    for (int i = 0; i < COUNT; i++) own[i] = (TYPE)(i % 3 + rank % 2);                                \
    for (int round = 0; round < ROUNDS; round++)                                                      \
      for (int to = 0; to < size; to++)                                                               \
        MPI_Accumulate(own, COUNT, MPI_TYPE, to, 1, COUNT, MPI_TYPE, MPI_SUM, win);                   \
    MPI_Win_fence(0, win);                                                                            \
    TYPE *here = memory;                                                                              \
    for (int i = 0; i < COUNT; i++) {                                                                 \
      TYPE all = (TYPE)(ROUNDS * (size * (i % 3) + size / 2));                                        \
      is_kept &= here[i + 1] == all;                                                                  \
    }                                                                                                 \
    is_kept &= here[0] == 0 && here[COUNT + 1] == 0;                                                  \
    MPI_Win_free(&win);                                                                               \
    return is_kept;                                                                                   \
  }
SUMS(sums_char, 5, signed char, MPI_SIGNED_CHAR)
SUMS(sums_short, 50, short, MPI_SHORT)
SUMS(sums_int, 50, int, MPI_INT)
SUMS(sums_long_long, 50, long long, MPI_LONG_LONG)
SUMS(sums_float, 50, float, MPI_FLOAT)
SUMS(sums_double, 50, double, MPI_DOUBLE)
SUMS(sums_complex, 50, float complex, MPI_C_FLOAT_COMPLEX)
SUMS(sums_double_complex, 50, double complex, MPI_C_DOUBLE_COMPLEX)

static int operations(void) {
  /* A word has bits of the first 30 ranks. */
  int bit = rank < 30 ? 1 << rank : 0, bits = (1 << (size < 30 ? size : 30)) - 1;
  int is_kept = 1, here, least = -rank, most = rank * 3, truth = rank == 0;
  double factor = 2;
  open_window(8);
  int *words = memory;
  words[0] = -1, words[2] = 0, words[4] = 0, words[6] = 1000, words[8] = -1000, words[10] = 1, words[12] = 0;
  ((double *)memory)[7] = 1;
  MPI_Win_fence(0, win);
  for (int to = 0; to < size; to++) {
    here = ~bit;
    MPI_Accumulate(&here, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_BAND, win);
    MPI_Accumulate(&bit, 1, MPI_INT, to, 1, 1, MPI_INT, MPI_BOR, win);
    MPI_Accumulate(&bit, 1, MPI_INT, to, 2, 1, MPI_INT, MPI_BXOR, win);
    MPI_Accumulate(&least, 1, MPI_INT, to, 3, 1, MPI_INT, MPI_MIN, win);
    MPI_Accumulate(&most, 1, MPI_INT, to, 4, 1, MPI_INT, MPI_MAX, win);
    MPI_Accumulate(&truth, 1, MPI_INT, to, 5, 1, MPI_INT, MPI_LAND, win);
    MPI_Accumulate(&truth, 1, MPI_INT, to, 6, 1, MPI_INT, MPI_LOR, win);
    MPI_Accumulate(&factor, 1, MPI_DOUBLE, to, 7, 1, MPI_DOUBLE, MPI_PROD, win);
  }
  MPI_Win_fence(0, win);
  is_kept &= words[0] == ~bits && words[2] == bits && words[4] == bits;
  is_kept &= words[6] == 1 - size && words[8] == 3 * (size - 1) && words[10] == (size == 1) && words[12] == 1;
  is_kept &= ((double *)memory)[7] == ldexp(1, size);
  MPI_Win_free(&win);
  return is_kept;
}

static int places(void) {
  struct { int value, index; } least = {(rank * 7 + 3) % size, rank};
  struct { double value; int index; } most = {(rank * 5 + 1) % size, rank};
  int is_kept = 1;
  open_window(1);
  struct { int value, index; } *low = memory;
  struct { double value; int index; } *high = (void *)((char *)memory + 64);
  low->value = 1000, high->value = -1000;
  MPI_Win_fence(0, win);
  for (int to = 0; to < size; to++) {
    MPI_Accumulate(&least, 1, MPI_2INT, to, 0, 1, MPI_2INT, MPI_MINLOC, win);
    MPI_Accumulate(&most, 1, MPI_DOUBLE_INT, to, 64, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
  }
  MPI_Win_fence(0, win);
  for (int from = size - 1, lowest = 1000, highest = -1; from >= 0; from--) {
    if ((from * 7 + 3) % size <= lowest) lowest = (from * 7 + 3) % size, is_kept = low->index == from;
    if ((from * 5 + 1) % size >= highest) highest = (from * 5 + 1) % size;
    if (from == 0) is_kept &= low->value == lowest && high->value == highest;
  }
  is_kept &= (high->index * 5 + 1) % size == (int)high->value;
  MPI_Win_free(&win);
  return is_kept;
}

/* Tickets: each is drawn once. */
static int tickets(void) {
  enum { ROUNDS = 100 };
  int is_kept = 1, one = 1, drawn[ROUNDS], *all = malloc(size * ROUNDS * sizeof(int)), *seen = calloc(size, ROUNDS * 4);
  open_window(sizeof(int));
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  for (int i = 0; i < ROUNDS; i++) {
    MPI_Fetch_and_op(&one, &drawn[i], MPI_INT, 0, 3, MPI_SUM, win);
    MPI_Win_flush(0, win);
  }
  MPI_Win_unlock(0, win);
  MPI_Allgather(drawn, ROUNDS, MPI_INT, all, ROUNDS, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size * ROUNDS; i++) is_kept &= all[i] >= 0 && all[i] < size * ROUNDS && !seen[all[i]]++;
  int now = -1;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Fetch_and_op(NULL, &now, MPI_INT, 0, 3, MPI_NO_OP, win);
  MPI_Win_unlock(0, win);
  is_kept &= now == size * ROUNDS;
  MPI_Win_free(&win);
  free(all);
  free(seen);
  return is_kept;
}

/* A lock of the program's own, by compare and swap, and a list that it guards. */
static int swaps(void) {
  enum { ROUNDS = 20 };
  int is_kept = 1, free_word = 0, mine = rank + 1, old, value;
  open_window(sizeof(int));
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < ROUNDS; i++) {
    do {
      MPI_Compare_and_swap(&mine, &free_word, &old, MPI_INT, 0, 0, win);
      MPI_Win_flush(0, win);
    } while (old != 0);
    MPI_Get(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    value++;
    MPI_Put(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    MPI_Accumulate(&free_word, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
  }
  long long wide = 5, wide_test = 0, wide_old = -1;
  MPI_Compare_and_swap(&wide, &wide_test, &wide_old, MPI_LONG_LONG, rank, 4, win);
  MPI_Win_flush(rank, win);
  is_kept &= wide_old == 0;
  MPI_Compare_and_swap(&wide_test, &wide_test, &wide_old, MPI_LONG_LONG, rank, 4, win);
  MPI_Win_flush(rank, win);
  is_kept &= wide_old == 5 && ((long long *)memory)[2] == 5;
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
  MPI_Win_unlock(0, win);
  is_kept &= value == ROUNDS * size;
  MPI_Win_free(&win);
  return is_kept;
}

static int fetches(void) {
  enum { COUNT = 400 };
  static double own[COUNT], old[COUNT];
  int is_kept = 1;
  open_window(sizeof(double));
  for (int i = 0; i < COUNT; i++) own[i] = i + 0.5, ((double *)memory)[i] = rank;
  MPI_Win_fence(0, win);
  MPI_Get_accumulate(own, COUNT, MPI_DOUBLE, old, COUNT, MPI_DOUBLE, next(), 0, COUNT, MPI_DOUBLE, MPI_SUM, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < COUNT; i++) is_kept &= old[i] == next() && ((double *)memory)[i] == rank + i + 0.5;
  MPI_Win_fence(0, win);
  MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, old, COUNT, MPI_DOUBLE, next(), 0, COUNT, MPI_DOUBLE, MPI_NO_OP, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < COUNT; i++) is_kept &= old[i] == next() + i + 0.5;
  MPI_Win_free(&win);
  return is_kept;
}

/* Every other element of the target, from elements without gaps. */
static int types(void) {
  enum { COUNT = 100 };
  short own[COUNT], old[2 * COUNT];
  int is_kept = 1;
  MPI_Datatype sparse;
  MPI_Type_vector(COUNT, 1, 2, MPI_SHORT, &sparse);
  MPI_Type_commit(&sparse);
  open_window(sizeof(short));
  short *here = memory;
  for (int i = 0; i < COUNT; i++) own[i] = i;
  for (int i = 0; i < 2 * COUNT; i++) here[i] = i, old[i] = -1;
  MPI_Win_fence(0, win);
  MPI_Get_accumulate(own, COUNT, MPI_SHORT, old, 1, sparse, next(), 0, 1, sparse, MPI_SUM, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < 2 * COUNT; i++) is_kept &= here[i] == (i % 2 ? i : i + i / 2);
  for (int i = 0; i < 2 * COUNT - 1; i++) is_kept &= old[i] == (i % 2 ? -1 : i);
  MPI_Win_free(&win);
  MPI_Type_free(&sparse);
  return is_kept;
}

static int large(void) {
  enum { COUNT = 50000 };
  int *base, *own = malloc(COUNT * sizeof(int)), is_kept = 1;
  MPI_Win big;
  MPI_Win_allocate(COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &big);
  for (int i = 0; i < COUNT; i++) base[i] = i, own[i] = 2 * i + rank;
  MPI_Win_fence(0, big);
  for (int to = 0; to < size; to++) MPI_Accumulate(own, COUNT, MPI_INT, to, 0, COUNT, MPI_INT, MPI_SUM, big);
  MPI_Win_fence(0, big);
  for (int i = 0; i < COUNT; i++) is_kept &= base[i] == i + size * 2 * i + size * (size - 1) / 2;
  MPI_Win_free(&big);
  free(own);
  return is_kept;
}

static int requests(void) {
  int is_kept = 1, own = rank + 1, got = -1, one = 1, old = -1, flag = 0;
  MPI_Request request, both[2];
  open_window(sizeof(int));
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_lock_all(0, win);
  MPI_Rput(&own, 1, MPI_INT, next(), 5, 1, MPI_INT, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  is_kept &= request == MPI_REQUEST_NULL;
  MPI_Win_flush_all(win);
  MPI_Rget(&got, 1, MPI_INT, next(), 5, 1, MPI_INT, win, &request);
  while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  is_kept &= got == rank + 1;
  MPI_Raccumulate(&one, 1, MPI_INT, 0, 6, 1, MPI_INT, MPI_SUM, win, &both[0]);
  MPI_Rget_accumulate(&one, 1, MPI_INT, &old, 1, MPI_INT, 0, 6, 1, MPI_INT, MPI_SUM, win, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  is_kept &= old >= 0 && old < 2 * size;
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Rget(&got, 1, MPI_INT, 0, 6, 1, MPI_INT, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_unlock(0, win);
  is_kept &= got == 2 * size;
  MPI_Win_free(&win);
  return is_kept;
}

static void own_sum(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *length; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static int wrong_arguments(void) {
  int is_kept = 1, class, value = 1;
  MPI_Op own;
  open_window(1);
  MPI_Op_create(own_sum, 1, &own);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, own, win), &class);
  is_kept &= class == MPI_ERR_OP;
  MPI_Error_class(MPI_Accumulate(&value, 1, MPI_INT, size, 0, 1, MPI_INT, MPI_SUM, win), &class);
  is_kept &= class == MPI_ERR_RANK;
  MPI_Error_class(MPI_Accumulate(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win), &class);
  is_kept &= class == MPI_ERR_COUNT;
  is_kept &= MPI_Accumulate(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win) == MPI_SUCCESS;
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  MPI_Op_free(&own);
  return is_kept;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rule("sums of char", sums_char());
  rule("sums of short", sums_short());
  rule("sums of int", sums_int());
  rule("sums of long long", sums_long_long());
  rule("sums of float", sums_float());
  rule("sums of double", sums_double());
  rule("sums of complex numbers", sums_complex());
  rule("sums of double complex numbers", sums_double_complex());
  rule("operations", operations());
  rule("least and largest, and where", places());
  rule("tickets", tickets());
  rule("compare and swap", swaps());
  rule("old values", fetches());
  rule("types with gaps", types());
  rule("200 KB", large());
  rule("requests", requests());
  rule("wrong arguments", wrong_arguments());
  MPI_Finalize();
  return 0;
}
