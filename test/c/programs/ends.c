// Ways in which a rank ends, by the first argument; the others wait for it.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each frame is kept, since the next one reads the one before: so clang makes no loop of it. */
__attribute__((noinline)) static int deep(int n, volatile char *before) {
  volatile char frame[4096];
  memset((void *)frame, n, sizeof frame);
  return n == 0 ? before[7] : deep(n - 1, frame) + before[9];
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  int rank, got = 0;
  volatile int *volatile nothing = NULL; /* volatile: clang makes a trap of a write through a known NULL */
  if (strcmp(how, "before") == 0) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) {
    if (strcmp(how, "exit") == 0) exit(9);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "MPI_Abort") == 0) MPI_Abort(MPI_COMM_WORLD, 5);
    if (strcmp(how, "trap") == 0) __builtin_trap();
    if (strcmp(how, "stack") == 0) printf("%d\n", deep(400, argv[0]));
    if (strcmp(how, "null") == 0) *nothing = 0;
    if (strcmp(how, "null far") == 0) { /* no call looks there, but the end does */
      nothing[900] = 0;
      return 0;
    }
    if (strcmp(how, "heap") == 0) {
      char *volatile place = malloc(3000000000u); /* volatile: clang takes an unused malloc() to succeed */
      printf("%s\n", place == NULL ? "NULL" : "memory");
    }
    if (strcmp(how, "rank") == 0) MPI_Send(&got, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);
    if (strcmp(how, "absent") == 0) {
      MPI_File file;
      MPI_File_open(MPI_COMM_SELF, "data", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    }
    if (strcmp(how, "buffer") == 0) MPI_Send((void *)(size_t)-8, 2, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (strcmp(how, "return") == 0) return 0;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0 && strcmp(how, "heap") != 0) {
    int code = MPI_Recv(&got, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    char text[MPI_MAX_ERROR_STRING], later[MPI_MAX_ERROR_STRING];
    int length, sum;
    MPI_Request request;
    MPI_Error_string(code, text, &length);
    MPI_Iallreduce(&got, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Error_string(MPI_Wait(&request, MPI_STATUS_IGNORE), later, &length);
    printf("rank 0: %s, %s\n", text, later);
    fflush(stdout);
    exit(0);
  }
  MPI_Finalize();
  return 0;
}
