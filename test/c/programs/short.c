// Barriers and reductions of few bytes, each several times: the first one goes the long way, the next ones the short way. Every rank
// checks, and rank 0 prints how many agree. With a number as argument: only so many of both, for which rank 0 comes first.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 6, BYTES = 88 };
static int rank, size;

static void rule(const char *name, int is_kept) {
  int all = 0;
  MPI_Reduce(&is_kept, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %d of %d\n", name, all, size);
}

static void pass(double seconds) {
  double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) {}
}

static unsigned state;
static unsigned drawn(void) { return state = state * 1664525u + 1013904223u, state >> 8; }

/* Numbers of a type whose sums depend on the order: no two ranks have the same. */
static void draw(MPI_Datatype type, void *to, int bytes, int seed) {
  state = 77u * rank + 13u * seed;
  for (int i = 0; i < bytes; i++) ((unsigned char *)to)[i] = drawn();
  if (type == MPI_DOUBLE) for (int i = 0; i < bytes / 8; i++) ((double *)to)[i] = 0.1 + drawn() / 3e6 * (1 - 2.0 * (i & 1));
  if (type == MPI_FLOAT) for (int i = 0; i < bytes / 4; i++) ((float *)to)[i] = 0.1f + drawn() / 3e6f;
}

/* By MPI_Iallreduce(), which has no short way, and then several times by both forms of MPI_Allreduce(). */
static int is_same(MPI_Datatype type, MPI_Op op, int count, int bytes, MPI_Comm comm) {
  _Alignas(16) char in[2 * BYTES], given[2 * BYTES], want[2 * BYTES], got[2 * BYTES];
  MPI_Request request;
  int is_kept = 1;
  draw(type, in, bytes, count);
  memcpy(given, in, bytes);
  MPI_Iallreduce(in, want, count, type, op, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < TIMES; i++) {
    memset(got, 0x55, sizeof got);
    MPI_Allreduce(in, got, count, type, op, comm);
    is_kept &= memcmp(got, want, bytes) == 0 && got[bytes] == 0x55 && memcmp(in, given, bytes) == 0;
    memcpy(got, in, bytes);
    MPI_Allreduce(MPI_IN_PLACE, got, count, type, op, comm);
    is_kept &= memcmp(got, want, bytes) == 0;
  }
  return is_kept;
}

static int digits(MPI_Comm comm) {
  static const struct { MPI_Datatype type; int bytes, is_integer; } types[] = {
    {MPI_DOUBLE, 8, 0},    {MPI_FLOAT, 4, 0}, {MPI_INT, 4, 1},          {MPI_UNSIGNED, 4, 1},
    {MPI_LONG_LONG, 8, 1}, {MPI_SHORT, 2, 1}, {MPI_UNSIGNED_CHAR, 1, 1}, {MPI_UNSIGNED_LONG_LONG, 8, 1},
  };
  static const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
  int is_kept = 1;
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (size_t o = 0; o < (types[t].is_integer ? sizeof ops / sizeof *ops : 4); o++)
      for (int k = 0; k < 3; k++) {
        int count = k == 0 ? 1 : k == 1 ? 3 : BYTES / types[t].bytes;
        is_kept &= is_same(types[t].type, ops[o], count, count * types[t].bytes, comm);
      }
  return is_kept;
}

/* Beyond what a short way takes. */
static int others(void) {
  int is_kept = is_same(MPI_DOUBLE, MPI_SUM, BYTES / 8 + 1, BYTES + 8, MPI_COMM_WORLD);
  is_kept &= is_same(MPI_INT, MPI_SUM, 0, 0, MPI_COMM_WORLD);
  struct { double value; int index; } pair = {(rank * 5) % size, rank}, best;
  for (int i = 0; i < TIMES; i++) {
    MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    is_kept &= best.value >= pair.value && best.value == (best.index * 5) % size;
  }
  return is_kept;
}

static void last(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *length; i++) if (((int *)in)[i] > ((int *)inout)[i]) ((int *)inout)[i] = ((int *)in)[i];
}

/* Short ones between others, begun before and behind them, and freed operations and types. */
static int between(void) {
  int is_kept = 1;
  for (int i = 0; i < 4 * TIMES; i++) {
    int one = 1, all = 0, later = 0, value = rank == i % size ? i : -1, sum = 0, most = 0;
    MPI_Request request;
    MPI_Datatype same;
    MPI_Op op;
    MPI_Iallreduce(&rank, &later, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (i % 3 == 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast(&value, 1, MPI_INT, i % size, MPI_COMM_WORLD);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    is_kept &= all == size && later == size * (size - 1) / 2 && value == i && sum == size;
    MPI_Scan(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_dup(MPI_INT, &same);
    MPI_Op_create(last, 1, &op);
    MPI_Allreduce(&rank, &most, 1, same, i % 2 ? op : MPI_MAX, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    MPI_Type_free(&same);
    is_kept &= sum == rank + 1 && most == size - 1;
  }
  return is_kept;
}

/* The handle of a communicator is soon another one's, with other members. */
static int communicators(void) {
  int is_kept = 1;
  for (int i = 0; i < TIMES; i++) {
    MPI_Comm copy, part;
    int people, one = 1, all, mine;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(copy, i % 2 ? rank % 2 : rank / 3, -rank, &part);
    MPI_Comm_size(part, &people);
    for (int k = 0; k < TIMES; k++) {
      MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, copy);
      MPI_Allreduce(&one, &mine, 1, MPI_INT, MPI_SUM, part);
      MPI_Barrier(part);
      is_kept &= all == size && mine == people;
      MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
      MPI_Barrier(MPI_COMM_SELF);
      is_kept &= all == 1;
    }
    is_kept &= is_same(MPI_DOUBLE, MPI_SUM, 3, 24, part);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
  }
  return is_kept;
}

/* A rank comes late, by more than any wait that spins, or by less. */
static int late(void) {
  int is_kept = 1;
  for (int i = 0; i < 40; i++) {
    int value = rank + i, sum = 0;
    if (i % size == rank) pass(i % 8 == 0 ? 2e-3 : i % 4 == 0 ? 3e-5 : 2e-6);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    is_kept &= sum == size * i + size * (size - 1) / 2;
  }
  return is_kept;
}

/* No rank leaves a barrier before the last one has come. */
static int barriers(void) {
  int is_kept = 1, one = 1, *came;
  MPI_Win win;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &came, &win);
  *came = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < 40; i++) {
    int had, has;
    if (i % size == rank) pass(i % 4 == 0 ? 2e-3 : 2e-6);
    MPI_Fetch_and_op(&one, &had, MPI_INT, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Fetch_and_op(NULL, &has, MPI_INT, 0, 0, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    is_kept &= had < (i + 1) * size && has >= (i + 1) * size;
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  return is_kept;
}

/* Messages that a rank has to get while it waits; those for any rank with any tag are no others than the program's. */
static int messages(void) {
  static int out[40000], in[40000];
  int is_kept = 1, right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int i = 0; i < 3 * TIMES; i++) {
    int count = i % 3 == 0 ? 40000 : i % 3, one = 1, all = 0, flag = 1;
    MPI_Request request;
    MPI_Status status;
    out[count - 1] = rank + i;
    MPI_Irecv(in, 40000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    if (rank % 2 == 0) MPI_Ssend(out, count, MPI_INT, right, i, MPI_COMM_WORLD);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank % 2 == 1) MPI_Ssend(out, count, MPI_INT, right, i, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    is_kept &= all == size && status.MPI_SOURCE == left && status.MPI_TAG == i && in[count - 1] == left + i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    is_kept &= flag == 0;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return is_kept;
}

/* Rank 0 comes last each time, and so waits for none: it has to get the message that it awaits nevertheless. */
static int progress(void) {
  /* Ends what would hang: where four ranks and two agents share two cores, a message needs more than 100. */
  enum { LOOPS = 10000 };
  int value = 0, is_kept = 1, times = 0, got = 0;
  MPI_Comm pair;
  MPI_Request request;
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : 1, rank, &pair);
  if (rank < 2 && size > 2) {
    MPI_Irecv(&value, 1, MPI_INT, 2, 4, MPI_COMM_WORLD, &request);
    for (int all = 0; all == 0 && times < LOOPS; times++) {
      if (rank == 0) pass(1e-3);
      if (rank == 1 && !got) MPI_Test(&request, &got, MPI_STATUS_IGNORE);
      MPI_Allreduce(&got, &all, 1, MPI_INT, MPI_LOR, pair);
    }
    if (!got) MPI_Wait(&request, MPI_STATUS_IGNORE);
    is_kept &= times < LOOPS && value == 7;
  }
  if (rank == 2) {
    pass(1e-2);
    value = 7;
    MPI_Ssend(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
    MPI_Send(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
  }
  MPI_Comm_free(&pair);
  return is_kept;
}

/* What is wrong stays so: arguments are known by their values alone. */
static int errors(void) {
  int one = 1, all, is_kept = 1;
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  for (int i = 0; i < TIMES; i++) {
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, copy);
    is_kept &= MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_BAND, copy) == MPI_ERR_OP;
    is_kept &= MPI_Allreduce(&one, &all, -1, MPI_INT, MPI_SUM, copy) == MPI_ERR_COUNT;
    is_kept &= MPI_Allreduce(NULL, &all, 1, MPI_INT, MPI_SUM, copy) == MPI_ERR_BUFFER;
  }
  MPI_Comm_free(&copy);
  return is_kept;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int sum = 0;
  for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
    if (rank > 0) pass(2e-3);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 0) pass(2e-3);
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  if (argc == 1) {
    rule("digits", digits(MPI_COMM_WORLD));
    rule("others", others());
    rule("between", between());
    rule("communicators", communicators());
    rule("late", late());
    rule("barriers", barriers());
    rule("messages", messages());
    rule("progress", progress());
    rule("errors", errors());
  }
  MPI_Finalize();
  return 0;
}
