// sbrk() of programs that pamir runs: their heap ends where the loader says. It grows if the program has a memory of its own.
// MPI's memory is of that heap.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define PAMIR(name) __attribute__((__import_module__("pamir"), __import_name__(name)))

PAMIR("arenaEnd") uintptr_t pamir_arena_end(void);
/* The address of so many new bytes; UINTPTR_MAX: there are none. */
PAMIR("arenaGrow") uintptr_t pamir_arena_grow(uintptr_t bytes);

// By this import the loader knows that a program's heap stays in its part of the memory: it is there without malloc() too.
__attribute__((used)) void *sbrk(intptr_t increment) {
  if (increment == 0) return (void *)pamir_arena_end();
  uintptr_t start = increment < 0 ? UINTPTR_MAX : pamir_arena_grow((uintptr_t)increment);
  if (start == UINTPTR_MAX) errno = ENOMEM;
  return (void *)start;
}

/* As in mpi.h: MPI_COMM_WORLD, MPI_ERR_NO_MEM. */
#define WORLD ((void *)0x101)
#define NO_MEM 39

__attribute__((__import_module__("mpi"), __import_name__("MPI_Comm_call_errhandler"))) int pamir_failed(void *comm, int code);

int MPI_Alloc_mem(intptr_t size, void *info, void *pointer) {
  (void)info;
  void *memory = size < 0 ? NULL : malloc(size == 0 ? 1 : size);
  if (memory == NULL) {
    pamir_failed(WORLD, NO_MEM);
    return NO_MEM;
  }
  *(void **)pointer = memory;
  return 0;
}

int MPI_Free_mem(void *memory) {
  free(memory);
  return 0;
}
