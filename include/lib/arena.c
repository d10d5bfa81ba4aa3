// sbrk() of programs that share a memory: their heap ends where the loader says, and never grows.
#include <errno.h>
#include <stdint.h>

__attribute__((__import_module__("pamir"), __import_name__("arenaEnd"))) uintptr_t pamir_arena_end(void);

void *sbrk(intptr_t increment) {
  if (increment == 0) return (void *)pamir_arena_end();
  errno = ENOMEM;
  return (void *)-1;
}
