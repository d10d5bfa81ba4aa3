// A farm: rank 0 hands out pieces of work, and takes a result from any rank (MPI_ANY_SOURCE), with any tag: the tag is
// the piece. The digits are the same in any number of ranks; one rank does all pieces itself.
//   npx pamir cc -O2 farm.c -o farm.wasm && npx pamir run -n 4 farm.wasm
#include <mpi.h>
#include <stdio.h>

enum { PIECES = 40, NUMBERS = 5000, STOP = PIECES };

/* How many primes a piece has. */
static int work(int piece) {
  int primes = 0;
  for (int n = piece * NUMBERS; n < (piece + 1) * NUMBERS; n++) {
    int is_prime = n > 1;
    for (int d = 2; d * d <= n && is_prime; d++) is_prime = n % d != 0;
    primes += is_prime;
  }
  return primes;
}

static void hand_out(int size, int results[PIECES]) {
  int next = 0;
  for (int worker = 1; worker < size; worker++) {
    MPI_Send(NULL, 0, MPI_INT, worker, next < PIECES ? next : STOP, MPI_COMM_WORLD);
    if (next < PIECES) next++;
  }
  for (int done = 0; done < PIECES; done++) {
    MPI_Status status;
    int primes;
    MPI_Recv(&primes, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    results[status.MPI_TAG] = primes;
    MPI_Send(NULL, 0, MPI_INT, status.MPI_SOURCE, next < PIECES ? next++ : STOP, MPI_COMM_WORLD);
  }
}

static void take(void) {
  for (;;) {
    MPI_Status status;
    MPI_Recv(NULL, 0, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (status.MPI_TAG == STOP) return;
    int primes = work(status.MPI_TAG);
    MPI_Send(&primes, 1, MPI_INT, 0, status.MPI_TAG, MPI_COMM_WORLD);
  }
}

int main(int argc, char **argv) {
  int rank, size, results[PIECES];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank > 0) take();
  else if (size > 1) hand_out(size, results);
  else for (int piece = 0; piece < PIECES; piece++) results[piece] = work(piece);

  if (rank == 0) {
    int sum = 0;
    for (int piece = 0; piece < PIECES; piece++) {
      sum += results[piece];
      if (piece % 10 == 9) printf("primes below %6d: %5d\n", (piece + 1) * NUMBERS, sum);
    }
  }
  MPI_Finalize();
}
