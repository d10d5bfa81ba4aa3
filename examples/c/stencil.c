// Heat in a ring of cells, by one-sided operations: each rank puts its first and last cell into the windows of its
// neighbors. A fence ends the puts of all ranks. The digits are the same in any number of ranks, up to 1,000.
//   npx pamir cc -O2 stencil.c -o stencil.wasm && npx pamir run -n 4 stencil.wasm
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1000, STEPS = 100 };

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > CELLS) {
    fprintf(stderr, "stencil: %d ranks, the limit is %d\n", size, CELLS);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int first = rank * CELLS / size, count = (rank + 1) * CELLS / size - first;
  int left = (rank + size - 1) % size, right = (rank + 1) % size;
  int count_left = (left + 1) * CELLS / size - left * CELLS / size;

  // A cell before the own ones and one behind, into which the neighbors put.
  double *now = calloc(count + 2, sizeof(double)), *next = calloc(count + 2, sizeof(double));
  for (int i = 1; i <= count; i++) now[i] = (first + i - 1) % 100 < 10 ? 100 : 0;
  MPI_Win windows[2];
  MPI_Win_create(now, (count + 2) * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &windows[0]);
  MPI_Win_create(next, (count + 2) * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &windows[1]);

  for (int step = 0; step < STEPS; step++) {
    MPI_Win window = windows[step % 2];
    MPI_Win_fence(0, window);
    MPI_Put(&now[1], 1, MPI_DOUBLE, left, count_left + 1, 1, MPI_DOUBLE, window);
    MPI_Put(&now[count], 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    for (int i = 1; i <= count; i++) next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
    double *old = now;
    now = next;
    next = old;
  }

  int *counts = malloc(size * sizeof(int)), *starts = malloc(size * sizeof(int));
  for (int r = 0; r < size; r++) {
    starts[r] = r * CELLS / size;
    counts[r] = (r + 1) * CELLS / size - starts[r];
  }
  double all[CELLS], sum = 0;
  MPI_Gatherv(&now[1], count, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int i = 0; i < CELLS && rank == 0; i++) {
    sum += all[i];
    if (i % 125 == 0) printf("cell %3d: %.12f\n", i, all[i]);
  }
  if (rank == 0) printf("sum %.9f\n", sum);
  MPI_Win_free(&windows[0]);
  MPI_Win_free(&windows[1]);
  MPI_Finalize();
}
