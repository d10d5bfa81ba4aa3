// Two programs of the kind of the NAS Parallel Benchmarks, with the sizes of their class A: conjugate gradients over a random sparse
// matrix (cg), and an integer sort (is). Any MPI: mpirun -n 2 mpi_kernels cg|is [iterations] → ns of the timed part, and what it computed.
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static uint32_t mixed(uint32_t i) {
  i = (i ^ (i >> 16)) * 0x45d9f3bu;
  i = (i ^ (i >> 16)) * 0x45d9f3bu;
  return i ^ (i >> 16);
}

enum { N = 14000, PER_ROW = 128, INNER = 25 };
static int begin, rows, *columns;
static double *values, *all;
static int counts[64], starts[64];

static double dot(const double *a, const double *b) {
  double mine = 0, sum;
  for (int i = 0; i < rows; i++) mine += a[i] * b[i];
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

static void multiply(const double *vector, double *product) {
  MPI_Allgatherv(vector, rows, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int i = 0; i < rows; i++) {
    double sum = 0;
    for (int k = i * PER_ROW; k < (i + 1) * PER_ROW; k++) sum += values[k] * all[columns[k]];
    product[i] = sum;
  }
}

/* As CG of NPB: the inverse power method, whose solver has 25 steps. */
static void cg(int iterations) {
  for (int r = 0; r < size; r++) starts[r] = (int)((int64_t)N * r / size);
  for (int r = 0; r < size; r++) counts[r] = (r + 1 < size ? starts[r + 1] : N) - starts[r];
  begin = starts[rank], rows = counts[rank];
  columns = malloc(rows * PER_ROW * sizeof *columns);
  values = malloc(rows * PER_ROW * sizeof *values);
  all = malloc(N * sizeof *all);
  for (int i = 0; i < rows; i++)
    for (int k = 0; k < PER_ROW; k++) {
      uint32_t draw = mixed((begin + i) * PER_ROW + k + 1);
      columns[i * PER_ROW + k] = k == 0 ? begin + i : (int)(draw % N);
      values[i * PER_ROW + k] = k == 0 ? PER_ROW : (double)(draw >> 16) / 65536 / 8;
    }
  double *x = malloc(5 * rows * sizeof *x), *z = x + rows, *r = x + 2 * rows, *p = x + 3 * rows, *q = x + 4 * rows, zeta = 0;
  for (int i = 0; i < rows; i++) x[i] = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int iteration = 0; iteration < iterations; iteration++) {
    for (int i = 0; i < rows; i++) z[i] = 0, r[i] = p[i] = x[i];
    double rest = dot(r, r);
    for (int step = 0; step < INNER; step++) {
      multiply(p, q);
      double alpha = rest / dot(p, q), before = rest;
      for (int i = 0; i < rows; i++) z[i] += alpha * p[i], r[i] -= alpha * q[i];
      rest = dot(r, r);
      for (int i = 0; i < rows; i++) p[i] = r[i] + rest / before * p[i];
    }
    zeta = 1 / dot(x, z);
    double norm = 1 / sqrt(dot(z, z));
    for (int i = 0; i < rows; i++) x[i] = norm * z[i];
  }
  double ns = (MPI_Wtime() - start) * 1e9;
  if (rank == 0) printf("cg %.0f\nresult %.6f\n", ns, zeta);
}

enum { KEYS = 1 << 23, KEY_MAX = 1 << 19, BUCKETS = 1 << 10 };

/* As IS of NPB: keys go to the rank of their bucket, which counts them. */
static void is(int iterations) {
  int mine = KEYS / size, *keys = malloc(mine * sizeof *keys), *out = malloc(mine * sizeof *out);
  int *in = malloc(2 * mine * sizeof *in), *ranks = malloc(KEY_MAX * sizeof *ranks), place[BUCKETS + 1];
  int send_counts[64], send_starts[64], get_counts[64], get_starts[64], sizes[BUCKETS], totals[BUCKETS];
  int64_t check = 0, sum = 0;
  for (int i = 0; i < mine; i++) {
    uint32_t draw = mixed(rank * mine + i), other = mixed(draw + 7);
    keys[i] = (int)((draw % KEY_MAX + other % KEY_MAX) / 2);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int iteration = 0; iteration < iterations; iteration++) {
    keys[iteration] = iteration;
    memset(sizes, 0, sizeof sizes);
    for (int i = 0; i < mine; i++) sizes[keys[i] / (KEY_MAX / BUCKETS)]++;
    place[0] = 0;
    for (int b = 0; b < BUCKETS; b++) place[b + 1] = place[b] + sizes[b];
    for (int i = 0; i < mine; i++) out[place[keys[i] / (KEY_MAX / BUCKETS)]++] = keys[i];
    MPI_Allreduce(sizes, totals, BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int bucket = 0, first = 0, low = 0, high = 0;
    int64_t before = 0;
    for (int r = 0; r < size; r++) {
      int from = bucket, count = 0;
      while (bucket < BUCKETS && (r == size - 1 || before < (int64_t)KEYS * (r + 1) / size))
        before += totals[bucket], count += sizes[bucket++];
      send_counts[r] = count, send_starts[r] = first, first += count;
      if (r == rank) low = from * (KEY_MAX / BUCKETS), high = bucket * (KEY_MAX / BUCKETS);
    }
    MPI_Alltoall(send_counts, 1, MPI_INT, get_counts, 1, MPI_INT, MPI_COMM_WORLD);
    get_starts[0] = 0;
    for (int r = 1; r < size; r++) get_starts[r] = get_starts[r - 1] + get_counts[r - 1];
    int received = get_starts[size - 1] + get_counts[size - 1];
    MPI_Alltoallv(out, send_counts, send_starts, MPI_INT, in, get_counts, get_starts, MPI_INT, MPI_COMM_WORLD);
    memset(ranks, 0, (high - low) * sizeof *ranks);
    for (int i = 0; i < received; i++) ranks[in[i] - low]++;
    for (int key = 1; key < high - low; key++) ranks[key] += ranks[key - 1];
    check += ranks[(high - low) / 2] + received;
  }
  double ns = (MPI_Wtime() - start) * 1e9;
  MPI_Reduce(&check, &sum, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("is %.0f\nresult %lld\n", ns, (long long)sum);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int iterations = argc > 2 ? atoi(argv[2]) : 10;
  if (argc > 1 && strcmp(argv[1], "cg") == 0) cg(iterations);
  if (argc > 1 && strcmp(argv[1], "is") == 0) is(iterations);
  MPI_Finalize();
  return 0;
}
