// sbrk() of a program in the job's memory, as newer libcs call it: malloc() begins with what the linker has left of the last
// page, and asks for the rest of its heap in parts. This program has no malloc(), which would call sbrk() itself.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

extern char __heap_end;

static void check(const char *name, int is_kept) { printf("%s: %s\n", name, is_kept ? "kept" : "broken"); }

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  enum { MEBIBYTE = 1 << 20 };
  void *nothing = (void *)-1;
  char *first = sbrk(MEBIBYTE), *second = sbrk(MEBIBYTE);
  check("the first bytes are those behind the linker's", first == &__heap_end);
  check("the next ones follow", second == first + MEBIBYTE && sbrk(0) == second + MEBIBYTE);
  if (first != nothing && second != nothing) first[0] = second[MEBIBYTE - 1] = 7;
  int mebibytes = 2;
  while (mebibytes < 4096 && sbrk(MEBIBYTE) != nothing) mebibytes++;
  char *end = sbrk(0);
  check("there is an end", mebibytes < 4096 && end == first + (uintptr_t)mebibytes * MEBIBYTE);
  check("what is too much takes nothing", sbrk(0x7fff0000) == nothing && sbrk(0) == end);
  end[-1] = 7;
  MPI_Finalize();
  return 0;
}
