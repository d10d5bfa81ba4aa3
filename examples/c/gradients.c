// Conjugate gradients for Poisson's equation on a square. Each rank has a block of rows. Sums are taken row by row,
// gathered, and added in the same order by all ranks, so that the digits are the same in any number of ranks, up to 64.
//   npx pamir cc -O2 gradients.c -o gradients.wasm && npx pamir run -n 4 gradients.wasm
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 64 };
typedef double Row[N + 2];
/* Rows 1 to `rows` are this rank's own; of `direction` the row before and the one behind are the neighbors'. */
static Row *solution, *residual, *direction, *product;
static int rank, size, rows, counts[N], starts[N];

static double dot(const Row *a, const Row *b) {
  double mine[N], all[N], sum = 0;
  for (int y = 1; y <= rows; y++) {
    mine[y - 1] = 0;
    for (int x = 1; x <= N; x++) mine[y - 1] += a[y][x] * b[y][x];
  }
  MPI_Allgatherv(mine, rows, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int y = 0; y < N; y++) sum += all[y];
  return sum;
}

/* product = A * direction: 4 times a point, less its four neighbors. */
static void multiply(void) {
  int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Request requests[4];
  MPI_Irecv(direction[0], N + 2, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(direction[rows + 1], N + 2, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(direction[1], N + 2, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(direction[rows], N + 2, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  for (int y = 1; y <= rows; y++)
    for (int x = 1; x <= N; x++)
      product[y][x] = 4 * direction[y][x] - direction[y - 1][x] - direction[y + 1][x] - direction[y][x - 1] -
                      direction[y][x + 1];
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > N) {
    fprintf(stderr, "gradients: %d ranks, the limit is %d\n", size, N);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int r = 0; r < size; r++) {
    starts[r] = r * N / size;
    counts[r] = (r + 1) * N / size - starts[r];
  }
  rows = counts[rank];
  Row **blocks[] = {&solution, &residual, &direction, &product};
  for (int i = 0; i < 4; i++) *blocks[i] = calloc(rows + 2, sizeof(Row));
  // The right side: a source at one point, a sink at another one.
  for (int y = 1; y <= rows; y++)
    for (int x = 1; x <= N; x++) {
      int place = (starts[rank] + y - 1) * N + x - 1;
      residual[y][x] = direction[y][x] = place == 20 * N + 10 ? 1 : place == 40 * N + 50 ? -1 : 0;
    }

  double rest = dot(residual, residual);
  for (int step = 1; rest > 1e-20 && step <= 500; step++) {
    multiply();
    double alpha = rest / dot(direction, product), before = rest;
    for (int y = 1; y <= rows; y++)
      for (int x = 1; x <= N; x++) {
        solution[y][x] += alpha * direction[y][x];
        residual[y][x] -= alpha * product[y][x];
      }
    rest = dot(residual, residual);
    for (int y = 1; y <= rows; y++)
      for (int x = 1; x <= N; x++) direction[y][x] = residual[y][x] + rest / before * direction[y][x];
    if (rank == 0 && (step % 50 == 0 || rest <= 1e-20)) printf("step %3d: residual %.9e\n", step, sqrt(rest));
  }
  double energy = dot(solution, solution);
  if (rank == 0) printf("norm of the solution: %.15f\n", sqrt(energy));
  MPI_Finalize();
}
