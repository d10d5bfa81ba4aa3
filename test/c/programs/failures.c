// Ranks that go on after another one has ended: revoke, shrink, agree, acknowledge. The first argument says what is tried.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static const char *nameOf(int code) {
  if (code == MPI_SUCCESS) return "success";
  if (code == MPIX_ERR_PROC_FAILED) return "failed";
  if (code == MPIX_ERR_PROC_FAILED_PENDING) return "pending";
  return code == MPIX_ERR_REVOKED ? "revoked" : "another error";
}

/* How many of a communicator's ranks have a value. */
static int count(MPI_Comm comm, int is_kept) {
  int all = -1;
  MPI_Allreduce(&is_kept, &all, 1, MPI_INT, MPI_SUM, comm);
  return all;
}

/* Rank 1 ends; the others find out in a collective operation, and go on without it, twice. */
static void shrinks(void) {
  MPI_Comm left, fewer;
  int one = 1, all = 0, there, people, code;
  if (rank == 1) exit(3);
  code = MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPIX_Comm_revoke(MPI_COMM_WORLD);
  MPIX_Comm_shrink(MPI_COMM_WORLD, &left);
  MPI_Comm_set_errhandler(left, MPI_ERRORS_RETURN);
  MPI_Comm_rank(left, &there);
  MPI_Comm_size(left, &people);
  int failed = count(left, code != MPI_SUCCESS), sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, left);
  if (there == 0) printf("%d of %d failed, %d left, ranks add up to %d\n", failed, size, people, sum);
  /* Messages of the new communicator, in a ring. */
  int from = -1;
  MPI_Sendrecv(&there, 1, MPI_INT, (there + 1) % people, 5, &from, 1, MPI_INT, (there + people - 1) % people, 5, left,
               MPI_STATUS_IGNORE);
  int right = count(left, from == (there + people - 1) % people);
  if (there == 0) printf("ring: %d\n", right);
  fflush(stdout);
  if (there == people - 1) abort();
  code = MPI_Barrier(left);
  MPIX_Comm_revoke(left);
  MPIX_Comm_shrink(left, &fewer);
  MPI_Comm_size(fewer, &people);
  failed = count(fewer, code != MPI_SUCCESS);
  if (rank == 0) printf("%d failed, %d left\n", failed, people);
  MPI_Comm_free(&fewer);
  MPI_Comm_free(&left);
}

/* No rank ends: rank 0 revokes a communicator in which the others wait, each in another call. */
static void revokes(void) {
  MPI_Comm other;
  int value = 0, code = MPI_SUCCESS, flag = 0;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
  if (rank == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPIX_Comm_revoke(other);
    code = MPI_Send(&value, 1, MPI_INT, 1, 0, other);
  } else {
    if (rank == 2) MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, other, &request);
    if (rank == 3) MPI_Ibarrier(other, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) code = MPI_Recv(&value, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    if (rank == 2 || rank == 3) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank > 3) code = MPI_Barrier(other);
  }
  int revoked = count(MPI_COMM_WORLD, code == MPIX_ERR_REVOKED);
  MPIX_Comm_is_revoked(other, &flag);
  int known = count(MPI_COMM_WORLD, flag), people, again = count(MPI_COMM_WORLD, MPI_Barrier(other) == MPIX_ERR_REVOKED);
  MPI_Comm whole;
  MPIX_Comm_shrink(other, &whole);
  MPI_Comm_size(whole, &people);
  int together = count(whole, 1);
  if (rank == 0) printf("revoked: %d, known: %d, again: %d, all left: %d of %d\n", revoked, known, again, together, people);
  MPI_Comm_free(&whole);
  MPI_Comm_free(&other);
}

/* Rank 1 ends: agreements fail everywhere until all ranks have acknowledged that. */
static void agrees(void) {
  int flag = ~(1 << rank), code, first, second, acknowledged = 0, others = ~0;
  MPI_Group known;
  if (rank == 1) exit(3);
  first = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
  for (int other = 0; other < size; other++) others &= other == 1 ? ~0 : ~(1 << other);
  int is_and = flag == others;
  /* An agreement of which all know the ends. */
  MPIX_Comm_failure_ack(MPI_COMM_WORLD);
  MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &known);
  MPI_Group_size(known, &acknowledged);
  MPI_Group_free(&known);
  MPIX_Comm_get_failed(MPI_COMM_WORLD, &known);
  int failed = -1;
  MPI_Group_size(known, &failed);
  MPI_Group_free(&known);
  flag = 1;
  second = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
  int is_good = is_and && acknowledged == 1 && failed == 1 && first == MPIX_ERR_PROC_FAILED && second == MPI_SUCCESS;
  MPI_Comm left;
  MPIX_Comm_shrink(MPI_COMM_WORLD, &left);
  code = count(left, is_good && flag == 1);
  if (rank == 0) printf("%s, then %s: %d\n", nameOf(first), nameOf(second), code);
  MPI_Comm_free(&left);
}

/* Rank 1 ends: a receive from any rank fails once, and goes on once that is acknowledged. */
static void any_source(void) {
  int value = -1, first, tested, flag = 0, second;
  MPI_Request request;
  if (rank == 1) exit(3);
  if (rank == 0) {
    first = MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &request);
    tested = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPIX_Comm_failure_ack(MPI_COMM_WORLD);
    MPI_Send(&rank, 1, MPI_INT, 2, 1, MPI_COMM_WORLD);
    second = MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("%s, %s, %s with %d\n", nameOf(first), nameOf(tested), nameOf(second), value);
  }
  if (rank == 2) {
    MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
}

enum { LONG = 8 << 20 };

/* How a receive from any rank has ended, whose message is rank 1's: an error has to name that rank. */
static const char *endOf(int code, const MPI_Status *status, const char *bytes) {
  if (code == MPIX_ERR_PROC_FAILED_PENDING) return "pending";
  if (status->MPI_SOURCE != 1) return "names another rank";
  if (code == MPIX_ERR_PROC_FAILED) return "failed";
  if (code != MPI_SUCCESS) return nameOf(code);
  for (int at = 0; at < LONG; at++)
    if (bytes[at] != (char)(at % 251)) return "success with wrong bytes";
  return "success";
}

/* Rank 1 ends while rank 0 gets long messages of it, by receives from any rank that have these messages already. */
static void transfers(void) {
  char *bytes[3], word[16] = "";
  MPI_Request requests[3];
  MPI_Status status;
  int there, right = 1;
  for (int i = 0; i < 3 && rank < 2; i++) {
    bytes[i] = malloc(LONG);
    for (int at = 0; at < LONG; at++) bytes[i][at] = rank == 1 ? at % 251 : 0;
  }
  if (rank == 0)
    for (int i = 0; i < 2; i++) MPI_Irecv(bytes[i], LONG, MPI_CHAR, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &requests[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    for (int i = 0; i < 3; i++) MPI_Isend(bytes[i], LONG, MPI_CHAR, 0, i, MPI_COMM_WORLD, &requests[i]);
    abort();
  }
  if (rank == 2) MPI_Send("still here", 11, MPI_CHAR, 0, 4, MPI_COMM_WORLD);
  if (rank != 0) return;
  int code = MPI_Recv(&there, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  printf("its end: %s\n", nameOf(code));
  MPIX_Comm_failure_ack(MPI_COMM_WORLD);
  /* The end may come before a transfer, within it or behind it. */
  for (int i = 0; i < 2; i++) {
    code = MPI_Wait(&requests[i], &status);
    const char *end = endOf(code, &status, bytes[i]);
    if (strcmp(end, "failed") == 0 || strcmp(end, "success") == 0) continue;
    printf("%d: %s\n", i, end);
    right = 0;
  }
  printf("matched: %s\n", right ? "right" : "wrong");
  /* The last message has come, and no receive had it before the end. */
  code = MPI_Recv(bytes[2], LONG, MPI_CHAR, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
  printf("stored: %s\n", endOf(code, &status, bytes[2]));
  code = MPI_Recv(word, 11, MPI_CHAR, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &status);
  printf("%s from %d: %s\n", nameOf(code), status.MPI_SOURCE, word);
}

/* Rank 1 ends with an exclusive lock of rank 2: the lock is free again, and rank 1's memory is refused. */
static void windows(void) {
  int *base, value = 7, put = MPI_SUCCESS, got = -1, flushed, fetched, fenced;
  MPI_Win win, own;
  MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_create(base, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &own);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_set_errhandler(own, MPI_ERRORS_RETURN);
  base[3] = rank;
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  if (rank == 1) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
    MPI_Put(&value, 1, MPI_INT, 2, 0, 1, MPI_INT, win);
    MPI_Win_flush(2, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) exit(3);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
    MPI_Get(&got, 1, MPI_INT, 2, 0, 1, MPI_INT, win);
    MPI_Win_unlock(2, win);
    MPI_Win_lock_all(0, win);
    MPI_Put(&value, 1, MPI_INT, 2, 5, 1, MPI_INT, win);
    put = MPI_Put(&value, 1, MPI_INT, 1, 5, 1, MPI_INT, win);
    fetched = MPI_Fetch_and_op(&value, &got, MPI_DOUBLE, 1, 4, MPI_SUM, win);
    flushed = MPI_Win_flush_all(win);
    MPI_Win_unlock_all(win);
    fenced = MPI_Win_fence(0, own);
    printf("lock: %d, put %s, fetch %s, flush %s, fence %s\n", got, nameOf(put), nameOf(fetched), nameOf(flushed),
           nameOf(fenced));
  }
}

/* Places outside of a window, and calls outside of an epoch. */
static void ranges(void) {
  int memory[4] = {0}, value = 1, codes[6], is_kept = 1;
  MPI_Win win;
  MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, win);
  codes[0] = MPI_Put(&value, 1, MPI_INT, 0, 4, 1, MPI_INT, win);
  codes[1] = MPI_Get(memory, 2, MPI_INT, 0, 3, 2, MPI_INT, win);
  codes[2] = MPI_Put(&value, 1, MPI_INT, 0, -1, 1, MPI_INT, win);
  codes[3] = MPI_Put(&value, 1, MPI_INT, 0, 0, 2, MPI_INT, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  codes[4] = MPI_Win_lock(5, 0, 0, win);
  codes[5] = MPI_Win_detach(win, memory);
  int expected[] = {MPI_ERR_RMA_RANGE, MPI_ERR_RMA_RANGE, MPI_ERR_DISP, MPI_ERR_TRUNCATE, MPI_ERR_LOCKTYPE,
                    MPI_ERR_RMA_FLAVOR};
  for (int i = 0; i < 6; i++) is_kept &= codes[i] == expected[i];
  is_kept &= MPI_Win_get_errhandler(MPI_WIN_NULL, (MPI_Errhandler *)&value) == MPI_ERR_WIN;
  MPI_Win_free(&win);
  int all = count(MPI_COMM_WORLD, is_kept);
  if (rank == 0) printf("kept: %d of %d\n", all, size);
}

/* A rank ends amid barriers and reductions of few bytes, of which the others have done many; so does another one, by a trap. The
   news of a revocation may reach a rank in the operation before. */
static void meets(void) {
  MPI_Comm left = MPI_COMM_WORLD, fewer;
  for (int round = 0; round < 2; round++) {
    int code = MPI_SUCCESS, people, times = 0;
    MPI_Comm_size(left, &people);
    while (code == MPI_SUCCESS) {
      int one = 1, all = 0;
      if (++times == 500 && rank == 1 + round) {
        if (round == 0) exit(3);
        abort();
      }
      if (times % 3 == 0) code = MPI_Barrier(left);
      else code = MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, left);
      if (code == MPI_SUCCESS && times % 3 != 0 && all != people) printf("rank %d: %d of %d\n", rank, all, people);
    }
    MPIX_Comm_revoke(left);
    MPIX_Comm_shrink(left, &fewer);
    MPI_Comm_set_errhandler(fewer, MPI_ERRORS_RETURN);
    int failed = count(fewer, code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED), early = count(fewer, times < 499);
    if (rank == 0) printf("%d failed, %d too early\n", failed, early);
    if (round > 0) MPI_Comm_free(&left);
    left = fewer;
  }
  MPI_Comm_free(&left);
}

/* No rank ends: rank 0 revokes a communicator behind many reductions, while the others wait in the next one. */
static void revokes_meeting(void) {
  MPI_Comm copy, left;
  int code = MPI_SUCCESS, one = 1, all, again, times = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  while (code == MPI_SUCCESS && !(rank == 0 && times == 500)) {
    times++;
    code = MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, copy);
  }
  if (rank == 0) MPIX_Comm_revoke(copy);
  again = MPI_Barrier(copy);
  MPIX_Comm_shrink(copy, &left);
  int known = count(left, rank == 0 || (code == MPIX_ERR_REVOKED && times >= 500)), refused = count(left, again == MPIX_ERR_REVOKED);
  if (rank == 0) printf("known: %d, refused: %d of %d\n", known, refused, size);
  MPI_Comm_free(&left);
  MPI_Comm_free(&copy);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strcmp(what, "shrink") == 0) shrinks();
  if (strcmp(what, "revoke") == 0) revokes();
  if (strcmp(what, "meet") == 0) meets();
  if (strcmp(what, "revoke-meeting") == 0) revokes_meeting();
  if (strcmp(what, "agree") == 0) agrees();
  if (strcmp(what, "any") == 0) any_source();
  if (strcmp(what, "transfer") == 0) transfers();
  if (strcmp(what, "window") == 0) windows();
  if (strcmp(what, "range") == 0) ranges();
  MPI_Finalize();
  return 0;
}
