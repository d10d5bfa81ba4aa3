// Two ranks send each other messages of 8 B to 256 KiB, and rank 0 prints the time that a message takes.
//   npx pamir cc -O2 ping-pong.c -o ping-pong.wasm && npx pamir run -n 2 ping-pong.wasm
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 1 << 18 };
static unsigned char *buffer;

/* Seconds from one rank to the other: half of a round trip. */
static double time_of(int rank, int bytes, int trips) {
  int other = 1 - rank;
  double start = MPI_Wtime();
  for (int i = 0; i < trips; i++) {
    if (rank == 0) MPI_Send(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) {
      buffer[bytes - 1]++;
      MPI_Send(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - start) / trips / 2;
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  buffer = malloc(BYTES_MAX);
  if (size == 1) puts("ping-pong needs two ranks: pamir run -n 2 ping-pong.wasm");
  // Ranks beyond the first two wait in MPI_Finalize().
  for (int bytes = 8; bytes <= BYTES_MAX && size > 1 && rank < 2; bytes *= 8) {
    int trips = bytes < 65536 ? 1000 : 100;
    memset(buffer, 0, BYTES_MAX);
    // The first round warms up: its code is compiled, and its memory touched.
    time_of(rank, bytes, trips);
    double seconds = time_of(rank, bytes, trips);
    if (rank == 0 && buffer[bytes - 1] != (unsigned char)(2 * trips)) MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0) printf("%7d bytes: %.2f us\n", bytes, seconds * 1e6);
  }
  MPI_Finalize();
}
