// Jacobi's method for Laplace's equation on a square: the upper border is 1, the other three are 0. Each rank has a
// block of rows, and sends its first and last row to its neighbors. The digits are the same in up to 32 ranks.
//   npx pamir cc -O2 jacobi.c -o jacobi.wasm && npx pamir run -n 4 jacobi.wasm
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 32 };
typedef double Row[N + 2];
/* Rows 1 to `rows` are this rank's own; the row before and the one behind are the neighbors'. */
static Row *grid, *next;

/* One step; the largest change of a point of this rank. */
static double step(int rows) {
  double change = 0;
  for (int y = 1; y <= rows; y++) {
    for (int x = 1; x <= N; x++) {
      next[y][x] = (grid[y - 1][x] + grid[y + 1][x] + grid[y][x - 1] + grid[y][x + 1]) / 4;
      change = fmax(change, fabs(next[y][x] - grid[y][x]));
    }
  }
  for (int y = 1; y <= rows; y++) memcpy(&grid[y][1], &next[y][1], N * sizeof(double));
  return change;
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > N) {
    fprintf(stderr, "jacobi: %d ranks, the limit is %d\n", size, N);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int first = rank * N / size, rows = (rank + 1) * N / size - first;
  grid = calloc(rows + 2, sizeof(Row));
  next = calloc(rows + 2, sizeof(Row));
  // A message to MPI_PROC_NULL is none: the borders stay.
  int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  int below = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  for (int x = 1; x <= N && rank == 0; x++) grid[0][x] = 1;

  double change = 1;
  int steps = 0;
  for (; change > 1e-4 && steps < 10000; steps++) {
    MPI_Sendrecv(&grid[1][1], N, MPI_DOUBLE, above, 0, &grid[rows + 1][1], N, MPI_DOUBLE, below, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&grid[rows][1], N, MPI_DOUBLE, below, 1, &grid[0][1], N, MPI_DOUBLE, above, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    change = step(rows);
    MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }

  // One rank has each of these rows; the others add 0.
  double mine[4] = {0}, all[4];
  for (int i = 0; i < 4; i++) {
    int y = (2 * i + 1) * N / 8 - first;
    if (y >= 0 && y < rows) mine[i] = grid[y + 1][N / 2];
  }
  MPI_Reduce(mine, all, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d steps, last change %.15g\n", steps, change);
    for (int i = 0; i < 4; i++) printf("row %2d: %.15f\n", (2 * i + 1) * N / 8, all[i]);
  }
  MPI_Finalize();
}
