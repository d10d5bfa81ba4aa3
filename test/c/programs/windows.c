// Windows of MPI: puts, gets, epochs, locks. Every rank checks, and rank 0 prints how many ranks agree. Same output by any MPI.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void rule(const char *name, int is_kept) {
  int all = 0;
  MPI_Reduce(&is_kept, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %d of %d\n", name, all, size);
}

static int next(void) { return (rank + 1) % size; }
static int previous(void) { return (rank + size - 1) % size; }

/* A window over memory of the program: static, and from malloc(). */
static int fences(int count, int is_static) {
  static int fixed[40000];
  int *window = is_static ? fixed : malloc(count * sizeof(int)), *own = malloc(count * sizeof(int)), is_kept = 1;
  MPI_Win win;
  for (int i = 0; i < count; i++) window[i] = -1, own[i] = rank * 1000 + i;
  MPI_Win_create(window, count * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  for (int round = 0; round < 3; round++) {
    MPI_Win_fence(0, win);
    MPI_Put(own, count, MPI_INT, next(), 0, count, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < count; i++) is_kept &= window[i] == previous() * 1000 + i;
  }
  int last = -1;
  MPI_Win_fence(0, win);
  MPI_Get(&last, 1, MPI_INT, previous(), count - 1, 1, MPI_INT, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  is_kept &= last == (previous() + size - 1) % size * 1000 + count - 1;
  MPI_Win_free(&win);
  is_kept &= win == MPI_WIN_NULL;
  free(own);
  if (!is_static) free(window);
  return is_kept;
}

static int allocated(void) {
  double *base, from[64];
  MPI_Win win;
  int is_kept = 1;
  MPI_Win_allocate(64 * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  for (int i = 0; i < 64; i++) base[i] = rank + i / 100.0;
  MPI_Win_fence(0, win);
  MPI_Get(from, 64, MPI_DOUBLE, next(), 0, 64, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < 64; i++) is_kept &= from[i] == next() + i / 100.0;
  /* What a window has made can be sent, too. */
  MPI_Sendrecv_replace(base, 64, MPI_DOUBLE, next(), 0, previous(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 64; i++) is_kept &= base[i] == previous() + i / 100.0;
  MPI_Win_free(&win);
  return is_kept;
}

/* Rows of the origin become columns of the target, and come back. */
static int types(void) {
  enum { N = 20 };
  static int matrix[N][N], rows[N], back[N];
  MPI_Datatype column, pairs;
  MPI_Win win;
  int is_kept = 1;
  MPI_Type_vector(N, 1, N, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Type_vector(N / 2, 2, 4, MPI_INT, &pairs);
  MPI_Type_commit(&pairs);
  memset(matrix, 0, sizeof matrix);
  for (int i = 0; i < N; i++) rows[i] = rank * 100 + i;
  MPI_Win_create(matrix, sizeof matrix, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Put(rows, N, MPI_INT, next(), 3, 1, column, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) is_kept &= matrix[i][j] == (j == 3 ? previous() * 100 + i : 0);
  MPI_Get(back, N, MPI_INT, previous(), 3, 1, column, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < N; i++) is_kept &= back[i] == (previous() + size - 1) % size * 100 + i;
  /* Gaps on both sides, of different widths. */
  static int wide[2 * N];
  memset(wide, 0, sizeof wide);
  MPI_Get(wide, 1, pairs, previous(), 3, 1, column, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < 2 * N; i++) is_kept &= wide[i] == (i % 4 < 2 ? back[i / 4 * 2 + i % 4] : 0);
  MPI_Win_free(&win);
  MPI_Type_free(&column);
  MPI_Type_free(&pairs);
  return is_kept;
}

/* Post, start, complete, wait: each rank puts to both neighbors. */
static int groups(void) {
  int window[2] = {-1, -1}, is_kept = 1, flag = 0;
  MPI_Win win;
  MPI_Group world, neighbors;
  MPI_Win_create(window, sizeof window, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_get_group(win, &world);
  int ranks[2] = {next(), previous()};
  MPI_Group_incl(world, next() == previous() ? 1 : 2, ranks, &neighbors);
  for (int round = 0; round < 4; round++) {
    int value = rank * 10 + round;
    MPI_Win_post(neighbors, 0, win);
    MPI_Win_start(neighbors, 0, win);
    MPI_Put(&value, 1, MPI_INT, next(), 0, 1, MPI_INT, win);
    MPI_Put(&value, 1, MPI_INT, previous(), 1, 1, MPI_INT, win);
    MPI_Win_complete(win);
    if (round % 2) MPI_Win_wait(win);
    else
      for (flag = 0; !flag;) MPI_Win_test(win, &flag);
    is_kept &= window[0] == previous() * 10 + round && window[1] == next() * 10 + round;
  }
  MPI_Group_free(&neighbors);
  MPI_Group_free(&world);
  MPI_Win_free(&win);
  return is_kept;
}

/* A counter under an exclusive lock: no increment is lost. */
static int exclusive(void) {
  enum { ROUNDS = 20 };
  int *counter, value, is_kept = 1;
  MPI_Win win;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  *counter = 0;
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < ROUNDS; i++) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
    value++;
    MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
  MPI_Win_unlock(0, win);
  is_kept = value == ROUNDS * size;
  MPI_Win_free(&win);
  return is_kept;
}

/* Two words that change together: shared locks never see one of them alone. */
static int shared_locks(void) {
  int *pair, seen[2], is_kept = 1;
  MPI_Win win;
  MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &pair, &win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  pair[0] = pair[1] = 0;
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 1; i <= 30; i++) {
    if (rank == size - 1) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
      for (int place = 0; place < 2; place++) {
        MPI_Put(&i, 1, MPI_INT, 0, place, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
      }
    } else {
      MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
      for (int place = 0; place < 2; place++) {
        MPI_Get(&seen[place], 1, MPI_INT, 0, place, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
      }
      is_kept &= seen[0] == seen[1];
    }
    MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
  return is_kept;
}

static int all_locked(void) {
  enum { COUNT = 3000 };
  int *base, is_kept = 1;
  static int own[COUNT], got[COUNT];
  MPI_Win win;
  MPI_Win_allocate(COUNT * sizeof(int) * size, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  for (int i = 0; i < COUNT; i++) own[i] = rank + i;
  MPI_Win_lock_all(0, win);
  for (int to = 0; to < size; to++) MPI_Put(own, COUNT, MPI_INT, to, rank * COUNT, COUNT, MPI_INT, win);
  MPI_Win_flush_local_all(win);
  memset(own, 0, sizeof own);
  MPI_Win_flush_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  for (int from = 0; from < size; from++)
    for (int i = 0; i < COUNT; i++) is_kept &= base[from * COUNT + i] == from + i;
  MPI_Get(got, COUNT, MPI_INT, next(), previous() * COUNT, COUNT, MPI_INT, win);
  MPI_Win_flush_local(next(), win);
  for (int i = 0; i < COUNT; i++) is_kept &= got[i] == previous() + i;
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  return is_kept;
}

/* Memory that the ranks of a node share: each writes its own part, and reads the others'. */
static int shared_memory(void) {
  MPI_Comm node;
  MPI_Win win;
  int is_kept = 1, there, people, *own, *other, unit;
  MPI_Aint bytes;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &there);
  MPI_Comm_size(node, &people);
  MPI_Win_allocate_shared((there + 1) * sizeof(int), sizeof(int), MPI_INFO_NULL, node, &own, &win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i <= there; i++) own[i] = there * 10 + i;
  MPI_Win_sync(win);
  MPI_Barrier(node);
  MPI_Win_sync(win);
  for (int from = 0; from < people; from++) {
    MPI_Win_shared_query(win, from, &bytes, &unit, &other);
    is_kept &= bytes == (MPI_Aint)((from + 1) * sizeof(int)) && unit == sizeof(int);
    for (int i = 0; i <= from; i++) is_kept &= other[i] == from * 10 + i;
  }
  /* One behind the other. */
  MPI_Win_shared_query(win, 0, &bytes, &unit, &other);
  is_kept &= own == other + there * (there + 1) / 2;
  int got = -1;
  MPI_Get(&got, 1, MPI_INT, people - 1, people - 1, 1, MPI_INT, win);
  MPI_Win_flush(people - 1, win);
  is_kept &= got == (people - 1) * 11;
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Comm_free(&node);
  return is_kept;
}

/* Long messages out of, and into, memory that another rank of the node has made. */
static int messages_of_shared_memory(void) {
  enum { COUNT = 50000 };
  MPI_Comm node;
  MPI_Win win;
  int is_kept = 1, there, people, *own;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &there);
  MPI_Comm_size(node, &people);
  MPI_Win_allocate_shared(2 * COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, node, &own, &win);
  for (int i = 0; i < COUNT; i++) own[i] = rank + i;
  MPI_Sendrecv(own, COUNT, MPI_INT, next(), 0, own + COUNT, COUNT, MPI_INT, previous(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < COUNT; i++) is_kept &= own[COUNT + i] == previous() + i;
  /* The same by operations of another window, and by collective ones. */
  MPI_Win other;
  int *base;
  MPI_Win_allocate(COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other);
  MPI_Win_fence(0, other);
  MPI_Put(own, COUNT, MPI_INT, next(), 0, COUNT, MPI_INT, other);
  MPI_Win_fence(0, other);
  for (int i = 0; i < COUNT; i++) is_kept &= base[i] == previous() + i;
  MPI_Get(own, COUNT, MPI_INT, next(), 0, COUNT, MPI_INT, other);
  MPI_Win_fence(0, other);
  for (int i = 0; i < COUNT; i++) is_kept &= own[i] == rank + i;
  MPI_Allreduce(own, own + COUNT, COUNT, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  for (int i = 0; i < COUNT; i++) is_kept &= own[COUNT + i] == size - 1 + i;
  MPI_Win_free(&other);
  MPI_Win_free(&win);
  MPI_Comm_free(&node);
  return is_kept;
}

static int dynamic(void) {
  MPI_Win win;
  int is_kept = 1, *memory = malloc(8 * sizeof(int)), value = rank + 5;
  MPI_Aint own, theirs;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  memset(memory, 0, 8 * sizeof(int));
  MPI_Win_attach(win, memory, 8 * sizeof(int));
  MPI_Get_address(memory, &own);
  MPI_Sendrecv(&own, 1, MPI_AINT, previous(), 0, &theirs, 1, MPI_AINT, next(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_INT, next(), theirs + 3 * sizeof(int), 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < 8; i++) is_kept &= memory[i] == (i == 3 ? previous() + 5 : 0);
  MPI_Win_detach(win, memory);
  MPI_Win_free(&win);
  free(memory);
  return is_kept;
}

static int removed;
static int on_remove(MPI_Win win, int key, void *value, void *state) {
  (void)win, (void)key;
  removed += value == state;
  return MPI_SUCCESS;
}

static int attributes(void) {
  static int memory[10];
  MPI_Win win;
  int is_kept = 1, flag = 0, key, length;
  void *base;
  MPI_Aint *bytes;
  int *unit, *flavor, *model;
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Win_create(memory, sizeof memory, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
  is_kept &= flag && base == memory;
  MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag);
  is_kept &= flag && *bytes == sizeof memory;
  MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag);
  is_kept &= flag && *unit == 2;
  MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
  is_kept &= flag && *flavor == MPI_WIN_FLAVOR_CREATE;
  MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag);
  is_kept &= flag && *model == MPI_WIN_UNIFIED;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_remove, &key, &removed);
  MPI_Win_get_attr(win, key, &base, &flag);
  is_kept &= !flag;
  MPI_Win_set_attr(win, key, &removed);
  MPI_Win_get_attr(win, key, &base, &flag);
  is_kept &= flag && base == &removed;
  MPI_Win_set_name(win, "a window");
  MPI_Win_get_name(win, name, &length);
  is_kept &= length == 8 && strcmp(name, "a window") == 0;
  MPI_Win_free(&win);
  is_kept &= removed == 1;
  MPI_Win_free_keyval(&key);
  is_kept &= key == MPI_KEYVAL_INVALID;
  return is_kept;
}

/* An MPI may leave hints out: others are only called. */
static int is_hint(int flag, const char *value, const char *given) {
#ifdef __wasm__
  return flag && strcmp(value, given) == 0;
#else
  return !flag || value != given;
#endif
}

static int hints(void) {
  MPI_Win win;
  MPI_Info info, read;
  char value[MPI_MAX_INFO_VAL];
  int memory[2], flag, is_kept = 1;
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "true");
  MPI_Win_create(memory, sizeof memory, 1, info, MPI_COMM_WORLD, &win);
  MPI_Info_set(info, "no_locks", "false");
  MPI_Win_get_info(win, &read);
  MPI_Info_get(read, "no_locks", MPI_MAX_INFO_VAL - 1, value, &flag);
  is_kept &= is_hint(flag, value, "true");
  MPI_Info_free(&read);
  MPI_Win_set_info(win, info);
  MPI_Win_get_info(win, &read);
  MPI_Info_get(read, "no_locks", MPI_MAX_INFO_VAL - 1, value, &flag);
  is_kept &= is_hint(flag, value, "false");
  MPI_Info_free(&read), MPI_Info_free(&info), MPI_Win_free(&win);
  return is_kept;
}

static int handled;
static void on_error(MPI_Win *win, int *code, ...) { handled += *win != MPI_WIN_NULL && *code != MPI_SUCCESS; }

static int wrong_arguments(void) {
  int memory[4] = {0}, value = 1, is_kept = 1, class;
  MPI_Win win;
  MPI_Errhandler handler;
  MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_get_errhandler(win, &handler);
  is_kept &= handler == MPI_ERRORS_ARE_FATAL;
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, win);
  MPI_Error_class(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win), &class);
  is_kept &= class == MPI_ERR_RANK;
  MPI_Error_class(MPI_Put(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, win), &class);
  is_kept &= class == MPI_ERR_COUNT;
  MPI_Error_class(MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win), &class);
  is_kept &= class == MPI_ERR_TYPE;
  is_kept &= MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win) == MPI_SUCCESS;
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_create_errhandler(on_error, &handler);
  MPI_Win_set_errhandler(win, handler);
  MPI_Error_class(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win), &class);
  is_kept &= class == MPI_ERR_RANK && handled == 1;
  is_kept &= MPI_Win_call_errhandler(win, MPI_ERR_OTHER) == MPI_SUCCESS && handled == 2;
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
  MPI_Error_class(MPI_Win_unlock(0, win), &class);
  is_kept &= class == MPI_ERR_RMA_SYNC;
  MPI_Error_class(MPI_Win_complete(win), &class);
  is_kept &= class == MPI_ERR_RMA_SYNC;
  MPI_Error_class(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win), &class);
  is_kept &= class == MPI_ERR_RMA_SYNC;
  MPI_Win_free(&win);
  return is_kept;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rule("fences, one word", fences(1, 0));
  rule("fences, a page", fences(1000, 1));
  rule("fences, 160 KB", fences(40000, 1));
  rule("fences, 4 MB", fences(1000000, 0));
  rule("memory of the window's own", allocated());
  rule("types with gaps", types());
  rule("epochs of groups", groups());
  rule("exclusive locks", exclusive());
  rule("shared locks", shared_locks());
  rule("all locked", all_locked());
  rule("memory of a node", shared_memory());
  rule("messages of a node's memory", messages_of_shared_memory());
  rule("memory that is attached", dynamic());
  rule("attributes", attributes());
  rule("hints", hints());
  rule("wrong arguments", wrong_arguments());
  MPI_Finalize();
  return 0;
}
