// More communicators at a time than a task may have regions, and as many again once the first ones were freed.
#include <mpi.h>
#include <stdio.h>

enum { COUNT = 1100 };

int main(int argc, char **argv) {
  static MPI_Comm comms[COUNT];
  int rank, size, right = 0;
  MPI_Comm one;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  /* Without an end, but for the numbers of communicators. */
  while (argc > 1) MPI_Comm_dup(MPI_COMM_SELF, &one), MPI_Comm_free(&one);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < COUNT; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < COUNT; i++) {
      int got = -1;
      MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0, comms[i], MPI_STATUS_IGNORE);
      right += got == i;
    }
    for (int i = 0; i < COUNT; i++) MPI_Comm_free(&comms[i]);
  }
  if (rank == 0) printf("%d of %d\n", right, 2 * COUNT);
  MPI_Finalize();
}
