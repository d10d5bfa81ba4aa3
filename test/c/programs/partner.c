// The ranks in C of a job whose rank 0 is a program in JavaScript: test/api/mpi.test.ts has its side of each step.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

/* Sends each message of rank 0 back, doubled: by tag 1 with MPI_Send, by tag 2 with MPI_Ssend, until tag 9 comes. */
static void echo(MPI_Comm comm) {
  for (;;) {
    MPI_Status status;
    int count;
    MPI_Probe(0, MPI_ANY_TAG, comm, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    double *numbers = malloc(count * sizeof(double) + 1);
    MPI_Recv(numbers, count, MPI_DOUBLE, 0, status.MPI_TAG, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) numbers[i] *= 2;
    if (status.MPI_TAG == 1) MPI_Send(numbers, count, MPI_DOUBLE, 0, 11, comm);
    if (status.MPI_TAG == 2) MPI_Ssend(numbers, count, MPI_DOUBLE, 0, 12, comm);
    free(numbers);
    if (status.MPI_TAG == 9) return;
  }
}

/* Two sends of every other number, whose packed copies lie one right behind the other: 20,480 bytes are whole pages. */
static void strided(void) {
  static double numbers[2][5120];
  MPI_Request both[2];
  MPI_Datatype every;
  MPI_Type_vector(2560, 1, 2, MPI_DOUBLE, &every);
  MPI_Type_commit(&every);
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < 5120; i++) numbers[k][i] = 10000 * k + i;
    MPI_Isend(numbers[k], 1, every, 0, 20 + k, MPI_COMM_WORLD, &both[k]);
  }
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  MPI_Type_free(&every);
}

static void collectives(MPI_Comm comm) {
  int me, all, value[2] = {0, 0}, sum, *row, *column;
  double one = me = 0, total;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &all);
  row = malloc(all * sizeof(int));
  column = malloc(all * all * sizeof(int));
  MPI_Barrier(comm);
  MPI_Bcast(value, 2, MPI_INT, 0, comm);
  one = me + value[1] / 2.0;
  MPI_Allreduce(&one, &total, 1, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Reduce(&me, NULL, 1, MPI_INT, MPI_MAX, 0, comm);
  MPI_Gather(&me, 1, MPI_INT, NULL, 0, MPI_INT, 0, comm);
  MPI_Scatter(NULL, 0, MPI_INT, &sum, 1, MPI_INT, 0, comm);
  MPI_Allgather(&sum, 1, MPI_INT, row, 1, MPI_INT, comm);
  for (int i = 0; i < all; i++) row[i] = row[i] * 100 + me;
  MPI_Alltoall(row, 1, MPI_INT, column, 1, MPI_INT, comm);
  MPI_Scan(&me, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Exscan(&me, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Reduce_scatter_block(row, &sum, 1, MPI_INT, MPI_MIN, comm);
  for (int i = 0; i < me; i++) row[i] = me;
  int *counts = malloc(all * sizeof(int)), *places = malloc(all * sizeof(int));
  for (int i = 0, at = 0; i < all; at += i++) counts[i] = i, places[i] = at;
  MPI_Allgatherv(row, me, MPI_INT, column, counts, places, MPI_INT, comm);
  MPI_Gatherv(row, me, MPI_INT, NULL, NULL, NULL, MPI_INT, 0, comm);
  MPI_Scatterv(NULL, NULL, NULL, MPI_INT, row, me, MPI_INT, 0, comm);
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, &total, 1, MPI_DOUBLE, MPI_PROD, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < 300; i++) {
    one = (me + i) * 0.1;
    if (i % 50 == me) for (double end = MPI_Wtime() + 2e-4; MPI_Wtime() < end;) {}
    MPI_Allreduce(&one, &total, 1, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_DOUBLE, MPI_MAX, comm);
    MPI_Barrier(comm);
  }
  printf("%d: bcast %d, sums %g, min %d, last %d\n", me, value[0], total, sum, me > 0 ? row[me - 1] : 0);
  free(row), free(column), free(counts), free(places);
}

int main(int argc, char **argv) {
  MPI_Comm copy, half;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  echo(MPI_COMM_WORLD);
  strided();
  collectives(MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split(copy, rank < 2, -rank, &half);
  if (rank < 2) {
    int got = 0;
    MPI_Sendrecv(&rank, 1, MPI_INT, 1, 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, 3, half, MPI_STATUS_IGNORE);
    printf("%d: rank 0 in JavaScript is %d in C\n", rank, got);
  }
  collectives(copy);
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  return 0;
}
