// Topologies of MPI, and collective operations between neighbors: every rank checks.
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

static int dimensions(void) {
  static const struct { int ranks, count, given[3], want[3]; } rows[] = {
    {6, 2, {0, 0}, {3, 2}},          {7, 2, {0, 0}, {7, 1}},          {12, 2, {0, 0}, {4, 3}},
    {6, 3, {0, 3, 0}, {2, 3, 1}},    {24, 3, {0, 0, 0}, {4, 3, 2}},   {64, 3, {0, 0, 0}, {4, 4, 4}},
    {16, 3, {0, 0, 0}, {4, 2, 2}},   {36, 2, {0, 0}, {6, 6}},         {1, 3, {0, 0, 0}, {1, 1, 1}},
    {30, 3, {0, 0, 0}, {5, 3, 2}},   {8, 1, {0}, {8}},                {100, 2, {0, 0}, {10, 10}},
  };
  int is_kept = 1;
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
    int dims[3];
    memcpy(dims, rows[i].given, sizeof dims);
    MPI_Dims_create(rows[i].ranks, rows[i].count, dims);
    is_kept &= memcmp(dims, rows[i].want, rows[i].count * sizeof(int)) == 0;
  }
  return is_kept;
}

/* A grid of size x 1 ranks: a ring, and a dimension of one. */
static int grid(void) {
  MPI_Comm grid, line, copy, none;
  int dims[2] = {size, 1}, periods[2] = {1, 0}, coords[2], got[2], kind, count, is_kept = 1, from, to, other, sum = 0;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  MPI_Topo_test(grid, &kind);
  MPI_Cartdim_get(grid, &count);
  MPI_Cart_coords(grid, rank, 2, coords);
  is_kept &= kind == MPI_CART && count == 2 && coords[0] == rank && coords[1] == 0;
  MPI_Cart_get(grid, 2, dims, periods, got);
  is_kept &= dims[0] == size && dims[1] == 1 && periods[0] && !periods[1] && got[0] == rank && got[1] == 0;
  MPI_Cart_shift(grid, 0, 1, &from, &to);
  is_kept &= from == (rank + size - 1) % size && to == (rank + 1) % size;
  MPI_Cart_shift(grid, 1, 1, &from, &to);
  is_kept &= from == MPI_PROC_NULL && to == MPI_PROC_NULL;
  coords[0] = rank + 1 + size;
  MPI_Cart_rank(grid, coords, &other);
  is_kept &= other == (rank + 1) % size;
  MPI_Cart_sub(grid, (int[]){1, 0}, &line);
  MPI_Cartdim_get(line, &count);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, line);
  is_kept &= count == 1 && sum == size * (size - 1) / 2;
  MPI_Comm_free(&line);
  MPI_Cart_sub(grid, (int[]){0, 1}, &line);
  MPI_Comm_size(line, &count);
  is_kept &= count == 1;
  MPI_Comm_free(&line);
  MPI_Comm_dup(grid, &copy);
  MPI_Topo_test(copy, &kind);
  is_kept &= kind == MPI_CART;
  MPI_Comm_free(&copy);
  MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){1}, (int[]){0}, 0, &none);
  is_kept &= (none == MPI_COMM_NULL) == (rank != 0);
  if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
  MPI_Cart_map(MPI_COMM_WORLD, 1, (int[]){size}, (int[]){0}, &other);
  is_kept &= other == rank;
  MPI_Topo_test(MPI_COMM_WORLD, &kind);
  is_kept &= kind == MPI_UNDEFINED;
  MPI_Comm_free(&grid);
  return is_kept;
}

/* A ring: each rank has the ones beside it. */
static MPI_Comm ring_of(int is_ring) {
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &is_ring, 0, &ring);
  return ring;
}

static int neighbors_in_a_ring(void) {
  enum { LONG = 10000 };
  MPI_Comm ring = ring_of(1);
  int left = (rank + size - 1) % size, right = (rank + 1) % size, is_kept = 1;
  int own[2] = {rank, 10 * rank}, all[4] = {-1, -1, -1, -1}, out[2] = {100 * rank, 100 * rank + 1}, in[2] = {-1, -1};
  MPI_Neighbor_allgather(own, 2, MPI_INT, all, 2, MPI_INT, ring);
  is_kept &= all[0] == left && all[1] == 10 * left && all[2] == right && all[3] == 10 * right;
  MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring);
  /* What goes to the left comes from the right. */
  is_kept &= in[0] == 100 * left + 1 && in[1] == 100 * right;
  int *far = malloc(2 * LONG * sizeof(int)), *near = malloc(2 * LONG * sizeof(int));
  for (int i = 0; i < 2 * LONG; i++) far[i] = 3 * rank + i / LONG;
  MPI_Neighbor_alltoall(far, LONG, MPI_INT, near, LONG, MPI_INT, ring);
  for (int i = 0; i < LONG; i++) is_kept &= near[i] == 3 * left + 1 && near[LONG + i] == 3 * right;
  /* Messages of the program with any tag are others. */
  MPI_Request requests[3];
  int token = -1;
  MPI_Irecv(&token, 1, MPI_INT, left, MPI_ANY_TAG, ring, &requests[0]);
  MPI_Ineighbor_allgather(own, 2, MPI_INT, all, 2, MPI_INT, ring, &requests[1]);
  MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring, &requests[2]);
  MPI_Waitall(2, requests + 1, MPI_STATUSES_IGNORE);
  is_kept &= all[1] == 10 * left && in[1] == 100 * right;
  MPI_Send(&rank, 1, MPI_INT, right, 3, ring);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  is_kept &= token == left;
  free(far), free(near);
  MPI_Comm_free(&ring);
  return is_kept;
}

/* A line has ends: the blocks of no rank stay. */
static int ends_of_a_line(void) {
  MPI_Comm line = ring_of(0);
  int all[2] = {-7, -7}, is_kept = 1;
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, line);
  is_kept &= all[0] == (rank == 0 ? -7 : rank - 1) && all[1] == (rank == size - 1 ? -7 : rank + 1);
  /* The same into elements with a gap between their two numbers. */
  int pair[2] = {rank, rank}, apart[6] = {-7, -7, -7, -7, -7, -7};
  MPI_Datatype gap;
  MPI_Type_vector(2, 1, 2, MPI_INT, &gap);
  MPI_Type_commit(&gap);
  MPI_Neighbor_allgather(pair, 2, MPI_INT, apart, 1, gap, line);
  for (int i = 0; i < 6; i++) is_kept &= apart[i] == (i == 1 || i == 4 ? -7 : all[i / 3]);
  MPI_Type_free(&gap);
  MPI_Comm_free(&line);
  return is_kept;
}

static int uneven_neighbors(void) {
  MPI_Comm ring = ring_of(1);
  int left = (rank + size - 1) % size, right = (rank + 1) % size, is_kept = 1;
  int own[8], counts[2] = {left + 1, right + 1}, places[2] = {0, size + 1};
  int *all = malloc((2 * size + 2) * sizeof(int)), *mine = malloc((size + 1) * sizeof(int));
  for (int i = 0; i < 2 * size + 2; i++) all[i] = -1;
  for (int i = 0; i <= rank; i++) mine[i] = rank;
  MPI_Neighbor_allgatherv(mine, rank + 1, MPI_INT, all, counts, places, MPI_INT, ring);
  is_kept &= all[left] == left && all[left + 1] == -1 && all[size + 1 + right] == right;
  /* To the left a pair, to the right one: so one comes from the left. */
  int send_counts[2] = {2, 1}, send_places[2] = {0, 4}, get[2] = {1, 2}, at[2] = {3, 0}, in[4] = {-1, -1, -1, -1};
  for (int i = 0; i < 8; i++) own[i] = 10 * rank + i;
  MPI_Neighbor_alltoallv(own, send_counts, send_places, MPI_INT, in, get, at, MPI_INT, ring);
  is_kept &= in[0] == 10 * right && in[1] == 10 * right + 1 && in[2] == -1 && in[3] == 10 * left + 4;
  MPI_Datatype pair, types[2], got_types[2];
  MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  types[0] = pair, types[1] = MPI_INT;
  got_types[0] = MPI_INT, got_types[1] = pair;
  MPI_Aint bytes[2] = {0, 4 * sizeof(int)}, to[2] = {3 * sizeof(int), 0};
  int ones[2] = {1, 1};
  memset(in, 0xff, sizeof in);
  MPI_Neighbor_alltoallw(own, ones, bytes, types, in, ones, to, got_types, ring);
  is_kept &= in[0] == 10 * right && in[1] == -1 && in[2] == 10 * right + 2 && in[3] == 10 * left + 4;
  MPI_Type_free(&pair);
  free(all), free(mine);
  MPI_Comm_free(&ring);
  return is_kept;
}

/* A star: rank 0 has all others as neighbors. */
static int star(void) {
  MPI_Comm graph;
  int edges_count = 2 * (size - 1), ranks, edges, kind, is_kept = 1, count;
  int *index = malloc(size * sizeof(int)), *to = malloc((edges_count + 1) * sizeof(int));
  int *got_index = malloc(size * sizeof(int)), *got = malloc((edges_count + 1) * sizeof(int)), *all = malloc((size + 1) * sizeof(int));
  for (int i = 0; i < size; i++) index[i] = size - 1 + i;
  for (int i = 1; i < size; i++) to[i - 1] = i, to[size - 2 + i] = 0;
  MPI_Graph_create(MPI_COMM_WORLD, size, index, to, 0, &graph);
  MPI_Topo_test(graph, &kind);
  MPI_Graphdims_get(graph, &ranks, &edges);
  is_kept &= kind == MPI_GRAPH && ranks == size && edges == edges_count;
  MPI_Graph_get(graph, size, edges_count, got_index, got);
  is_kept &= memcmp(index, got_index, size * sizeof(int)) == 0 && memcmp(to, got, edges_count * sizeof(int)) == 0;
  MPI_Graph_neighbors_count(graph, rank, &count);
  is_kept &= count == (rank == 0 ? size - 1 : 1);
  MPI_Graph_neighbors(graph, rank, count, got);
  for (int i = 0; i < count; i++) is_kept &= got[i] == (rank == 0 ? i + 1 : 0);
  int own = 5 * rank;
  MPI_Neighbor_allgather(&own, 1, MPI_INT, all, 1, MPI_INT, graph);
  for (int i = 0; i < count; i++) is_kept &= all[i] == 5 * got[i];
  MPI_Graph_map(MPI_COMM_WORLD, size, index, to, &count);
  is_kept &= count == rank;
  free(index), free(to), free(got_index), free(got), free(all);
  MPI_Comm_free(&graph);
  return is_kept;
}

/* Each rank sends to the next one, and names the edge of the one before. */
static int edges_by_all(void) {
  MPI_Comm graph, adjacent;
  int next = (rank + 1) % size, before = (rank + size - 1) % size, into, out, is_weighted, is_kept = 1, kind;
  int degree = 1, beyond = (next + 1) % size, weight = 100 + next, from, to, from_weight, to_weight, all = -1, own = 7 * rank;
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &next, &degree, &beyond, &weight, MPI_INFO_NULL, 0, &graph);
  MPI_Topo_test(graph, &kind);
  MPI_Dist_graph_neighbors_count(graph, &into, &out, &is_weighted);
  MPI_Dist_graph_neighbors(graph, 1, &from, &from_weight, 1, &to, &to_weight);
  is_kept &= kind == MPI_DIST_GRAPH && into == 1 && out == 1 && is_weighted;
  is_kept &= from == before && to == next && from_weight == 100 + before && to_weight == 100 + rank;
  MPI_Neighbor_allgather(&own, 1, MPI_INT, &all, 1, MPI_INT, graph);
  is_kept &= all == 7 * before;
  /* The same edges, twice each: blocks come in their order. */
  int sources[2] = {before, before}, destinations[2] = {next, next}, pair[2] = {rank, -rank}, in[2] = {0};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &adjacent);
  MPI_Dist_graph_neighbors_count(adjacent, &into, &out, &is_weighted);
  is_kept &= into == 2 && out == 2 && !is_weighted;
  MPI_Neighbor_alltoall(pair, 1, MPI_INT, in, 1, MPI_INT, adjacent);
  is_kept &= in[0] == before && in[1] == -before;
  MPI_Comm_free(&graph);
  MPI_Comm_free(&adjacent);
  return is_kept;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rule("dimensions", dimensions());
  rule("a grid", grid());
  rule("neighbors in a ring", neighbors_in_a_ring());
  rule("the ends of a line", ends_of_a_line());
  rule("neighbors with blocks of several lengths", uneven_neighbors());
  rule("a star", star());
  rule("edges by all", edges_by_all());
  MPI_Finalize();
  return 0;
}
