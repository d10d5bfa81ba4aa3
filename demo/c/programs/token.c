// A token goes round through all ranks, and each adds its number to it. Rank 0 knows what must come back.
//   npx pamir cc -O2 token.c -o token.wasm && npx pamir run -n 4 token.wasm
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 3 };

int main(int argc, char **argv) {
  int rank, size, token = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int left = (rank + size - 1) % size, right = (rank + 1) % size;

  for (int round = 1; round <= ROUNDS; round++) {
    if (rank > 0) MPI_Recv(&token, 1, MPI_INT, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    token += rank;
    printf("round %d: the token is %d here\n", round, token);
    fflush(stdout);
    MPI_Sendrecv_replace(&token, 1, MPI_INT, right, round, rank > 0 ? MPI_PROC_NULL : left, round, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
  }
  if (rank == 0) printf("%d rounds of %d ranks: %d, %s\n", ROUNDS, size, token,
                        token == ROUNDS * size * (size - 1) / 2 ? "as it must be" : "which is wrong");
  MPI_Finalize();
}
