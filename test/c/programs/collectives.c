// Collective operations of MPI against what they have to give: every rank checks, and rank 0 prints how many agree.
#include <complex.h>
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

static int broadcasts(int root, int count) {
  int *data = malloc((count + 1) * sizeof(int)), is_kept = 1;
  for (int i = 0; i < count; i++) data[i] = rank == root ? i * 3 + root : -1;
  MPI_Bcast(data, count, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; i++) is_kept &= data[i] == i * 3 + root;
  free(data);
  return is_kept;
}

static int reductions(void) {
  double in[3] = {rank, rank * 0.5, -rank}, out[3] = {0};
  long long sum = rank + 1, all = 0;
  int is_kept = 1, bits = 1 << (rank % 30), or = 0, truth = rank != 0, both = 0;
  struct { double value; int index; } here = {(rank * 7) % size, rank}, best;
  struct { int value; int index; } least = {-rank, rank}, found;
  MPI_Allreduce(in, out, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  is_kept &= out[0] == size - 1 && out[1] == (size - 1) * 0.5 && out[2] == 0;
  MPI_Allreduce(&sum, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  is_kept &= all == (long long)size * (size + 1) / 2;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG_LONG, MPI_PROD, MPI_COMM_WORLD);
  long long product = 1;
  for (int i = 1; i <= size; i++) product *= i;
  is_kept &= sum == product;
  MPI_Reduce(&bits, &or, 1, MPI_INT, MPI_BOR, size - 1, MPI_COMM_WORLD);
  if (rank == size - 1) is_kept &= or == (1 << (size < 30 ? size : 30)) - 1;
  MPI_Allreduce(&truth, &both, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  is_kept &= both == 0;
  MPI_Allreduce(&here, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  int want = 0;
  for (int i = 1; i < size; i++) if ((i * 7) % size > (want * 7) % size) want = i;
  is_kept &= best.index == want && best.value == (want * 7) % size;
  MPI_Allreduce(&least, &found, 1, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD);
  is_kept &= found.value == -(size - 1) && found.index == size - 1;
  double complex z = rank + 1.0 * I, total = 0;
  MPI_Allreduce(&z, &total, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
  is_kept &= creal(total) == size * (size - 1) / 2.0 && cimag(total) == size;
  return is_kept;
}

/* Elements in packed structs, where the short way of an aligned double is known. */
static int misaligned(void) {
  struct __attribute__((packed)) { char before; double value; char after; } all[2] = {{1, rank, 2}, {3, 0, 4}};
  void *in = (char *)&all[0] + 1, *out = (char *)&all[1] + 1;
  double aligned = 1, sum = 0;
  int is_kept = 1;
  for (int i = 0; i < 3; i++) MPI_Allreduce(&aligned, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  is_kept &= all[0].value == rank && all[1].value == size * (size - 1) / 2.0;
  MPI_Scan(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  is_kept &= all[1].value == rank * (rank + 1) / 2.0;
  MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  is_kept &= all[0].value == size - 1 && all[0].before == 1 && all[0].after == 2;
  return is_kept && all[1].before == 3 && all[1].after == 4;
}

/* Two by two matrices: their product depends on the order. */
static void multiply(void *in, void *inout, int *length, MPI_Datatype *type) {
  int *a = in, *b = inout;
  for (int i = 0; i < *length; i++, a += 4, b += 4) {
    int c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
    memcpy(b, c, sizeof c);
  }
  (void)type;
}

static int operations_of_the_user(void) {
  int own[4] = {1, rank, 0, 1}, got[4] = {0}, want[4] = {1, 0, 0, 1};
  MPI_Datatype matrix;
  MPI_Op op;
  MPI_Type_contiguous(4, MPI_INT, &matrix);
  MPI_Type_commit(&matrix);
  MPI_Op_create(multiply, 0, &op);
  own[2] = rank % 2;
  for (int i = 0; i < size; i++) {
    int next[4] = {1, i, i % 2, 1}, left[4];
    memcpy(left, want, sizeof left);
    memcpy(want, next, sizeof want);
    int one = 1;
    multiply(left, want, &one, NULL);
  }
  MPI_Allreduce(own, got, 1, matrix, op, MPI_COMM_WORLD);
  MPI_Op_free(&op);
  MPI_Type_free(&matrix);
  return memcmp(got, want, sizeof got) == 0 && op == MPI_OP_NULL;
}

static int scans(void) {
  int own = rank + 1, in = 0, ex = -1;
  MPI_Scan(&own, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Exscan(&own, &ex, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return in == (rank + 1) * (rank + 2) / 2 && (rank == 0 || ex == rank * (rank + 1) / 2);
}

static int gathers(void) {
  int *all = malloc(size * 2 * sizeof(int)), own[2] = {rank, rank * rank}, is_kept = 1, mine[2];
  MPI_Allgather(own, 2, MPI_INT, all, 2, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++) is_kept &= all[2 * i] == i && all[2 * i + 1] == i * i;
  memset(all, 0, size * 2 * sizeof(int));
  MPI_Gather(own, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) for (int i = 0; i < size; i++) is_kept &= all[2 * i + 1] == i * i;
  MPI_Scatter(all, 2, MPI_INT, mine, 2, MPI_INT, 0, MPI_COMM_WORLD);
  is_kept &= mine[0] == rank && mine[1] == rank * rank;
  free(all);
  return is_kept;
}

static int uneven(void) {
  int *counts = malloc(size * sizeof(int)), *places = malloc(size * sizeof(int)), is_kept = 1, at = 0;
  for (int i = 0; i < size; i++) {
    counts[i] = i + 1;
    places[i] = at;
    at += i + 2; /* a gap of one behind each block */
  }
  int *all = malloc(at * sizeof(int)), *own = malloc((rank + 1) * sizeof(int));
  memset(all, 0xff, at * sizeof(int));
  for (int i = 0; i <= rank; i++) own[i] = 100 * rank + i;
  MPI_Allgatherv(own, rank + 1, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++) {
    for (int j = 0; j <= i; j++) is_kept &= all[places[i] + j] == 100 * i + j;
    is_kept &= all[places[i] + i + 1] == -1;
  }
  memset(own, 0, (rank + 1) * sizeof(int));
  MPI_Scatterv(all, counts, places, MPI_INT, own, rank + 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  for (int i = 0; i <= rank; i++) is_kept &= own[i] == 100 * rank + i;
  memset(all, 0xff, at * sizeof(int));
  MPI_Gatherv(own, rank + 1, MPI_INT, all, counts, places, MPI_INT, size - 1, MPI_COMM_WORLD);
  if (rank == size - 1)
    for (int i = 0; i < size; i++) is_kept &= all[places[i] + i] == 101 * i && all[places[i] + i + 1] == -1;
  free(counts), free(places), free(all), free(own);
  return is_kept;
}

static int all_to_all(void) {
  int *out = malloc(size * sizeof(int)), *in = malloc(size * sizeof(int)), is_kept = 1;
  for (int i = 0; i < size; i++) out[i] = 100 * rank + i;
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++) is_kept &= in[i] == 100 * i + rank;
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++) is_kept &= in[i] == 100 * rank + i;
  /* Rank r sends i + 1 numbers to rank i. */
  int *counts = malloc(4 * size * sizeof(int)), *places = counts + size, *got = places + size, *got_at = got + size;
  int sent = 0;
  for (int i = 0; i < size; i++) {
    counts[i] = i + 1;
    places[i] = sent;
    sent += i + 1;
    got[i] = rank + 1;
    got_at[i] = i * (rank + 1);
  }
  int *more = malloc(sent * sizeof(int)), *into = malloc(size * (rank + 1) * sizeof(int));
  for (int i = 0; i < sent; i++) more[i] = 1000 * rank + i;
  MPI_Alltoallv(more, counts, places, MPI_INT, into, got, got_at, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++)
    for (int j = 0; j <= rank; j++) is_kept &= into[got_at[i] + j] == 1000 * i + rank * (rank + 1) / 2 + j;
  free(out), free(in), free(counts), free(more), free(into);
  return is_kept;
}

static int scattered_sums(void) {
  int *in = malloc(2 * size * sizeof(int)), out[2], is_kept = 1;
  for (int i = 0; i < 2 * size; i++) in[i] = i + rank;
  MPI_Reduce_scatter_block(in, out, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 2; i++) is_kept &= out[i] == size * (2 * rank + i) + size * (size - 1) / 2;
  free(in);
  return is_kept;
}

static int communicators(void) {
  MPI_Comm half, none, reversed;
  MPI_Group world, odd;
  int half_rank, half_size, sum = 0, is_kept = 1, result;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
  int want = 0, members = 0;
  for (int i = rank % 2; i < size; i += 2) want += i, members++;
  is_kept &= sum == want && half_size == members && half_rank == (members - 1) - rank / 2;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &none);
  is_kept &= (none == MPI_COMM_NULL) == (rank == 0);
  if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
  int *ranks = malloc(size * sizeof(int));
  for (int i = 0; i < size; i++) ranks[i] = size - 1 - i;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, size, ranks, &odd);
  MPI_Comm_create(MPI_COMM_WORLD, odd, &reversed);
  int back;
  MPI_Comm_rank(reversed, &back);
  is_kept &= back == size - 1 - rank;
  MPI_Comm_compare(MPI_COMM_WORLD, reversed, &result);
  is_kept &= result == (size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
  int first = 0;
  MPI_Bcast(&first, 1, MPI_INT, 0, reversed);
  MPI_Group_translate_ranks(odd, size, ranks, world, ranks);
  is_kept &= ranks[0] == 0;
  MPI_Group_free(&odd);
  MPI_Group_free(&world);
  MPI_Comm_free(&reversed);
  MPI_Comm_free(&half);
  free(ranks);
  return is_kept;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rule("short broadcast", broadcasts(0, 1));
  rule("long broadcast of the last rank", broadcasts(size - 1, 50000));
  rule("broadcast of nothing", broadcasts(0, 0));
  rule("reductions", reductions());
  rule("misaligned elements", misaligned());
  rule("operations of the user", operations_of_the_user());
  rule("scans", scans());
  rule("gather and scatter", gathers());
  rule("blocks of several lengths", uneven());
  rule("all to all", all_to_all());
  rule("reduce and scatter", scattered_sums());
  rule("communicators", communicators());
  MPI_Finalize();
  return 0;
}
