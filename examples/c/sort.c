// Sorts a million integers: each rank makes a part of them, MPI_Alltoallv() brings each to the rank whose range has it,
// and that rank counts them. The digits are the same in any number of ranks.
//   npx pamir cc -O2 sort.c -o sort.wasm && npx pamir run -n 4 sort.wasm
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 1 << 20, KEY_MAX = 1 << 16 };

/* The i-th key, from 0 to KEY_MAX - 1: a mixed counter. */
static int key_at(uint32_t i) {
  i = (i ^ (i >> 16)) * 0x45d9f3bu;
  i = (i ^ (i >> 16)) * 0x45d9f3bu;
  return (i ^ (i >> 16)) % KEY_MAX;
}

/* The first key of a rank's range. */
static int range(int rank, int size) { return (int)(((int64_t)rank * KEY_MAX + size - 1) / size); }
static int owner(int key, int size) { return (int)((int64_t)key * size / KEY_MAX); }

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int begin = (int)((int64_t)KEYS * rank / size), end = (int)((int64_t)KEYS * (rank + 1) / size);

  // How many keys go to each rank, and where they begin.
  int *counts = calloc(4 * size, sizeof(int)), *starts = counts + size;
  int *counts_in = counts + 2 * size, *starts_in = counts + 3 * size;
  for (int i = begin; i < end; i++) counts[owner(key_at(i), size)]++;
  MPI_Alltoall(counts, 1, MPI_INT, counts_in, 1, MPI_INT, MPI_COMM_WORLD);
  for (int r = 1; r < size; r++) {
    starts[r] = starts[r - 1] + counts[r - 1];
    starts_in[r] = starts_in[r - 1] + counts_in[r - 1];
  }
  int received = starts_in[size - 1] + counts_in[size - 1];
  int *out = malloc((end - begin) * sizeof(int)), *in = malloc((received + 1) * sizeof(int));
  int *place = calloc(size, sizeof(int));
  for (int i = begin; i < end; i++) {
    int key = key_at(i), to = owner(key, size);
    out[starts[to] + place[to]++] = key;
  }
  MPI_Alltoallv(out, counts, starts, MPI_INT, in, counts_in, starts_in, MPI_INT, MPI_COMM_WORLD);

  // Each rank sorts its range by counting.
  int lowest = range(rank, size), highest = range(rank + 1, size), written = 0;
  int *count_of = calloc(highest - lowest, sizeof(int));
  for (int i = 0; i < received; i++) count_of[in[i] - lowest]++;
  for (int key = lowest; key < highest; key++)
    for (int n = count_of[key - lowest]; n > 0; n--) in[written++] = key;

  // The place of the first one in the whole, and a sum in which each place counts.
  int64_t mine = received, before = 0, sum = 0, total;
  MPI_Exscan(&mine, &before, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) before = 0;
  for (int i = 0; i < received; i++) sum += (before + i) * in[i] % 1000003;
  MPI_Reduce(&sum, &total, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  for (int eighth = 0; eighth < 8; eighth++) {
    int64_t at = (int64_t)eighth * KEYS / 8 - before;
    int key = at >= 0 && at < received ? in[at] : 0, found;
    MPI_Reduce(&key, &found, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("key %7d: %5d\n", eighth * (KEYS / 8), found);
  }
  if (rank == 0) printf("sum over all places: %lld\n", (long long)total);
  MPI_Finalize();
}
