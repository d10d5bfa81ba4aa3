// Collective operations over MPI, for Open MPI and MPICH: one after the other, as OSU's benchmarks without their barriers. The
// root of a broadcast takes turns, so that no member runs ahead of the others.
// mpirun -n TASKS collectives CPU0 CPU1 SECONDS BYTES barrier|broadcast|allreduce|allgather|alltoall|reduce_scatter
// → percentiles of the time of one operation. BYTES are those of a member's block, of a vector in reductions. More than two tasks
// are not bound to processors.
#include "common.h"
#include <mpi.h>

#define SAMPLES_MAX 1000000

static double samples[SAMPLES_MAX];

static void operate(const char *what, int turn, int size, void *out, void *in, int bytes) {
  MPI_Comm all = MPI_COMM_WORLD;
  if (strcmp(what, "barrier") == 0) MPI_Barrier(all);
  else if (strcmp(what, "broadcast") == 0) MPI_Bcast(out, bytes, MPI_BYTE, turn % size, all);
  else if (strcmp(what, "allreduce") == 0) MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, all);
  else if (strcmp(what, "allgather") == 0) MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, all);
  else if (strcmp(what, "alltoall") == 0) MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, all);
  else if (strcmp(what, "reduce_scatter") == 0)
    MPI_Reduce_scatter_block(out, in, bytes / 8 > size ? bytes / 8 / size : 1, MPI_DOUBLE, MPI_SUM, all);
  else MPI_Abort(all, 2);
}

int main(int count, char **arguments) {
  int rank, size;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (count != 6 || size < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  if (size == 2) pin(atoi(arguments[1 + rank]));
  double seconds = atof(arguments[3]);
  int bytes = atoi(arguments[4]);
  const char *what = arguments[5];
  double *out = malloc((size_t)(bytes + 8) * size), *in = malloc((size_t)(bytes + 8) * size);
  for (size_t i = 0; i < (size_t)(bytes / 8 + 1) * size; i++) out[i] = in[i] = 1;
  unsigned long each = bytes <= 4096 ? 16 : 1, batches = bytes > 65536 ? 10 : size > 2 ? 20 : 200;
  double cost = timer_cost();
  // The first phase warms up, the second one finds out how many batches take as long as is asked for, the third one counts.
  for (int phase = 0; phase < 3; phase++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_ns();
    for (unsigned long i = 0; i < batches; i++) {
      double start = now_ns();
      for (unsigned long k = 0; k < each; k++) operate(what, i * each + k, size, out, in, bytes);
      samples[i] = (now_ns() - start - cost) / each;
    }
    if (phase == 1) {
      batches = (unsigned long)(seconds * 1e9 / ((now_ns() - begin) / batches)) + 1;
      if (batches > SAMPLES_MAX) batches = SAMPLES_MAX;
    }
    MPI_Bcast(&batches, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) print_percentiles(samples, batches);
  MPI_Finalize();
  return 0;
}
