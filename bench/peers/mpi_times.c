// Times of MPI between two ranks, for `npm run bench -- c`: `pamir cc` and mpicc compile it. Each line: a name, and the least
// of some rounds in ns a message or operation. The argument is how many rounds; 0: only a line behind MPI_Init().
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 1 << 20, WINDOW = 16 };
static char *buffer;

static void send(int bytes, int to, int tag) { MPI_Send(buffer, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD); }
static void receive(int bytes, int from, int tag) {
  MPI_Recv(buffer, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 waits until rank 1 has all. */
static void answer(int rank) {
  if (rank == 0) receive(1, 1, 1);
  else send(1, 0, 1);
}

/* Each test: `times` messages or operations. */
static void one_way(int rank, int bytes, int times) {
  for (int i = 0; i < times; i += 2) {
    if (rank == 0) send(bytes, 1, 0), receive(bytes, 1, 0);
    else receive(bytes, 0, 0), send(bytes, 0, 0);
  }
}

static void window(int rank, int bytes, int times) {
  MPI_Request requests[WINDOW];
  for (int i = 0; i < times; i += WINDOW) {
    for (int k = 0; k < WINDOW; k++) {
      if (rank == 0) MPI_Isend(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[k]);
      else MPI_Irecv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    answer(rank);
  }
}

static void stream(int rank, int bytes, int times) {
  for (int i = 0; i < times; i++) {
    if (rank == 0) send(bytes, 1, 0);
    else receive(bytes, 0, 0);
  }
  answer(rank);
}

static void allreduce(int rank, int bytes, int times) {
  double mine = rank + bytes, sum;
  for (int i = 0; i < times; i++) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(int rank, int bytes, int times) {
  (void)rank, (void)bytes;
  for (int i = 0; i < times; i++) MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
  const char *name;
  void (*run)(int, int, int);
  int bytes, times;
} tests[] = {
  {"one_way_8", one_way, 8, 20000},       {"one_way_1024", one_way, 1024, 10000},
  {"one_way_65536", one_way, 65536, 500}, {"one_way_1048576", one_way, 1 << 20, 60},
  {"window_8", window, 8, 32000},         {"stream_8", stream, 8, 50000},
  {"stream_65536", stream, 65536, 1000},  {"stream_1048576", stream, 1 << 20, 100},
  {"allreduce_8", allreduce, 8, 5000},    {"barrier", barrier, 0, 5000},
};

int main(int argc, char **argv) {
  int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  buffer = malloc(BYTES_MAX);
  memset(buffer, rank, BYTES_MAX);
  for (size_t k = 0; k < sizeof tests / sizeof *tests && rounds > 0 && size == 2; k++) {
    double least = 1e9;
    for (int round = 0; round < rounds; round++) {
      MPI_Barrier(MPI_COMM_WORLD);
      double start = MPI_Wtime();
      tests[k].run(rank, tests[k].bytes, tests[k].times);
      double time = (MPI_Wtime() - start) / tests[k].times;
      if (time < least) least = time;
    }
    if (rank == 0) printf("%s %.1f\n", tests[k].name, least * 1e9);
  }
  if (rounds == 0 && rank == 0) puts("started");
  fflush(stdout);
  MPI_Finalize();
}
