// The same work over MPI, for Open MPI and MPICH: ping-pong with blocking calls as osu_latency, windows of 64 with
// receives posted ahead as osu_mbw_mr; the receiver touches every cache line of each message.
// Large messages: windows of 4 (beyond 64 MiB of 1), each from and to a place of its own, which nobody touches.
// mpirun -n 2 mpi CPU0 CPU1 SECONDS BYTES lat|rate|rndv → percentiles of half a round trip, or messages per second
#include "common.h"
#include <mpi.h>

#define BATCH 16
#define SAMPLES_MAX 2000000

static double samples[SAMPLES_MAX];
static volatile uint32_t sink;

static void latency(int rank, char *out, char *in, int bytes, double seconds) {
  // The length of the run is agreed upon in rounds, so that no message says it.
  double cost = timer_cost(), per_batch = 0;
  size_t taken = 0, batches = 2000;
  for (int phase = 0; phase < 2; phase++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_ns();
    for (size_t i = 0; i < batches; i++) {
      double start = now_ns();
      for (int k = 0; k < BATCH; k++) {
        if (rank == 0) {
          MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
          MPI_Recv(in, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
          MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
        sink += touch((uint8_t *)in, bytes);
      }
      if (phase == 1 && taken < SAMPLES_MAX) samples[taken++] = (now_ns() - start - cost) / (2 * BATCH);
    }
    per_batch = (now_ns() - begin) / batches;
    if (phase == 0) {
      unsigned long n = (unsigned long)(seconds * 1e9 / per_batch) + 1;
      if (n > SAMPLES_MAX) n = SAMPLES_MAX;
      MPI_Bcast(&n, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
      batches = n;
    }
  }
  if (rank == 0) print_percentiles(samples, taken);
}

static void one_window(int rank, char *out, char *in, int bytes) {
  MPI_Request requests[WINDOW];
  char answer = 0;
  if (rank == 0) {
    for (int i = 0; i < WINDOW; i++) MPI_Isend(out, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    MPI_Recv(&answer, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    for (int i = 0; i < WINDOW; i++) {
      MPI_Irecv(in + (size_t)i * bytes, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < WINDOW; i++) {
      MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      sink += touch((uint8_t *)in + (size_t)i * bytes, bytes);
    }
    MPI_Send(&answer, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
  }
}

#define LARGE_WINDOW 4
#define SINGLE_BYTES (1 << 26)

static int large_count(int bytes) { return bytes > SINGLE_BYTES ? 1 : LARGE_WINDOW; }

static void large_window(int rank, char *out, char *in, int bytes) {
  int count = large_count(bytes);
  MPI_Request requests[LARGE_WINDOW];
  for (int i = 0; i < count; i++) {
    if (rank == 0) MPI_Isend(out + (size_t)i * bytes, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[i]);
    else MPI_Irecv(in + (size_t)i * bytes, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void large(int rank, char *out, char *in, int bytes, double seconds) {
  unsigned long windows = 4;
  double elapsed = 0;
  for (int phase = 0; phase < 2; phase++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_ns();
    for (unsigned long i = 0; i < windows; i++) large_window(rank, out, in, bytes);
    elapsed = now_ns() - begin;
    if (phase == 1) break;
    windows = (unsigned long)(seconds * 1e9 / (elapsed / windows)) + 1;
    MPI_Bcast(&windows, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) print_rate((double)windows * large_count(bytes), elapsed);
}

static void rate(int rank, char *out, char *in, int bytes, double seconds) {
  size_t windows = 50;
  double elapsed = 0;
  for (int phase = 0; phase < 2; phase++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_ns();
    for (size_t i = 0; i < windows; i++) one_window(rank, out, in, bytes);
    elapsed = now_ns() - begin;
    if (phase == 1) break;
    // A second, longer look before the length is fixed: the first windows are slow.
    unsigned long n = windows;
    begin = now_ns();
    for (size_t i = 0; i < windows; i++) one_window(rank, out, in, bytes);
    n = (unsigned long)(seconds * 1e9 / ((now_ns() - begin) / windows)) + 1;
    MPI_Bcast(&n, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    windows = n;
  }
  if (rank == 0) print_rate((double)windows * WINDOW, elapsed);
}

int main(int count, char **arguments) {
  int rank, size;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (count != 6 || size != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  pin(atoi(arguments[1 + rank]));
  double seconds = atof(arguments[3]);
  int bytes = atoi(arguments[4]);
  size_t places = strcmp(arguments[5], "rndv") == 0 ? large_count(bytes) : WINDOW;
  char *out = malloc(bytes * places), *in = malloc(bytes * places);
  memset(out, 1, bytes * places);
  memset(in, 0, bytes * places);
  if (strcmp(arguments[5], "lat") == 0) latency(rank, out, in, bytes, seconds);
  else if (strcmp(arguments[5], "rndv") == 0) large(rank, out, in, bytes, seconds);
  else rate(rank, out, in, bytes, seconds);
  MPI_Finalize();
  return 0;
}
