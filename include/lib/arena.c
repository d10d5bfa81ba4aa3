// sbrk() of programs that share a memory: their heap ends where the loader says, and never grows. MPI's memory is of that heap.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

__attribute__((__import_module__("pamir"), __import_name__("arenaEnd"))) uintptr_t pamir_arena_end(void);

void *sbrk(intptr_t increment) {
  if (increment == 0) return (void *)pamir_arena_end();
  errno = ENOMEM;
  return (void *)-1;
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
