// The area of a circle of radius 1, which is pi: the integral of 4 / (1 + x * x) from 0 to 1, by strips. Each rank adds
// up the strips of its own blocks; MPI_Reduce() adds the sums. The digits are the same in any number of ranks.
//   npx pamir cc -O2 circle.c -o circle.wasm && npx pamir run -n 4 circle.wasm 200000000
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 100000 };

/* A function that returns often: the second compiler of a browser takes it over soon. */
static double block(long long first, long long strips) {
  double width = 1.0 / strips, sum = 0;
  for (long long i = first; i < first + BLOCK && i < strips; i++) {
    double x = (i + 0.5) * width;
    sum += 4 / (1 + x * x);
  }
  return sum * width;
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long long strips = argc > 1 ? atoll(argv[1]) : 10000000;

  double sum = 0, pi;
  for (long long i = rank; i * BLOCK < strips; i += size) sum += block(i * BLOCK, strips);
  MPI_Reduce(&sum, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%lld strips: %.10f\n", strips, pi);
  MPI_Finalize();
}
