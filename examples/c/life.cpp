// Conway's game of life in C++, on a torus: each rank has some rows, and sends its first and last row to its neighbors.
// The numbers are the same in any number of ranks, up to 64.
//   npx pamir c++ -O2 life.cpp -o life.wasm && npx pamir run -n 4 life.wasm
#include <algorithm>
#include <cstdio>
#include <mpi.h>
#include <utility>
#include <vector>

constexpr int WIDTH = 96, HEIGHT = 64;

class Field {
public:
  Field(int rank, int size)
      : above((rank + size - 1) % size), below((rank + 1) % size), first(rank * HEIGHT / size),
        rows((rank + 1) * HEIGHT / size - first), cells((rows + 2) * WIDTH) {}

  // Places of the whole field; a rank sets its own.
  void set(int x, int y) {
    if (y >= first && y < first + rows) at(x, y - first + 1) = 1;
  }

  void step() {
    MPI_Sendrecv(&at(0, 1), WIDTH, MPI_CHAR, above, 0, &at(0, rows + 1), WIDTH, MPI_CHAR, below, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&at(0, rows), WIDTH, MPI_CHAR, below, 1, &at(0, 0), WIDTH, MPI_CHAR, above, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    std::vector<char> next(cells.size());
    for (int y = 1; y <= rows; y++)
      for (int x = 0; x < WIDTH; x++) {
        const int n = neighbors(x, y);
        next[y * WIDTH + x] = n == 3 || (n == 2 && at(x, y));
      }
    cells.swap(next);
  }

  int living() const {
    const int mine = std::count(cells.begin() + WIDTH, cells.end() - WIDTH, 1);
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
  }

private:
  int above, below, first, rows;
  // A row of the neighbor above, the own ones, and a row of the neighbor below.
  std::vector<char> cells;

  char &at(int x, int y) { return cells[y * WIDTH + (x + WIDTH) % WIDTH]; }

  int neighbors(int x, int y) {
    int n = -at(x, y);
    for (int dy : {-1, 0, 1})
      for (int dx : {-1, 0, 1}) n += at(x + dx, y + dy);
    return n;
  }
};

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > HEIGHT) {
    fprintf(stderr, "life: %d ranks, the limit is %d\n", size, HEIGHT);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  Field field(rank, size);
  // The R-pentomino: five cells that take 1,103 generations to settle on a plane.
  for (auto [x, y] : {std::pair{41, 30}, {42, 30}, {40, 31}, {41, 31}, {41, 32}}) field.set(x, y);
  for (int generation = 0; generation <= 400; generation++) {
    if (generation % 100 == 0) {
      const int living = field.living();
      if (rank == 0) std::printf("generation %3d: %3d cells\n", generation, living);
    }
    field.step();
  }
  MPI_Finalize();
}
