// Messages that come before their receive. Arguments: how many each rank sends to the next one, and their bytes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  int rank, size, whole = 0, all;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int count = atoi(argv[1]), bytes = atoi(argv[2]), next = (rank + 1) % size, previous = (rank + size - 1) % size;
  char *out = malloc(bytes), *in = malloc(bytes);
  for (int i = 0; i < count; i++) {
    memset(out, i + rank, bytes);
    MPI_Send(out, bytes, MPI_CHAR, next, 1, MPI_COMM_WORLD);
  }
  // The last one is received first: the others are kept until then.
  MPI_Send(out, 1, MPI_CHAR, next, 2, MPI_COMM_WORLD);
  MPI_Recv(in, 1, MPI_CHAR, previous, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < count; i++) {
    MPI_Recv(in, bytes, MPI_CHAR, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    whole += in[0] == (char)(i + previous) && in[bytes - 1] == in[0];
  }
  MPI_Reduce(&whole, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d of %d\n", all, count * size);
  MPI_Finalize();
}
