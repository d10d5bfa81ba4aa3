// How a rank goes wrong: the argument chooses, and the last rank does it. The others wait for it in a barrier.
//   npx pamir cc -O2 faults.c -o faults.wasm && npx pamir run -n 4 faults.wasm abort
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "none";
  volatile int zero = 0, number = 1;
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1) {
    fprintf(stderr, "the fault: %s\n", how);
    if (strcmp(how, "exit") == 0) exit(3);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "MPI_Abort") == 0) MPI_Abort(MPI_COMM_WORLD, 5);
    if (strcmp(how, "trap") == 0) number = number / zero;
    if (strcmp(how, "rank") == 0) MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    if (strcmp(how, "loop") == 0) while (zero == 0) number++;
    if (strcmp(how, "lines") == 0) for (int i = 1; i <= 100000; i++) printf("line %d of 100000\n", i);
    if (strcmp(how, "long") == 0) for (int i = 0; i < 1600000; i++) fputs("0123456789", stdout);
    if (strcmp(how, "flood") == 0) while (zero == 0) printf("line %d of a flood\n", number++);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
