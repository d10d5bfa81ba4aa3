/* What a program has of its process: arguments, variables, clocks, chance, and its end. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void at_exit(void) { printf("atexit\n"); }

static int nested(int depth) {
  if (depth == 0) exit(7);
  return nested(depth - 1) + depth;
}

static double seconds(clockid_t clock) {
  struct timespec time;
  if (clock_gettime(clock, &time) != 0) return -1;
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int clocks(void) {
  double begin = seconds(CLOCK_MONOTONIC);
  struct timespec pause = {0, 20 * 1000 * 1000};
  if (nanosleep(&pause, NULL) != 0) return 1;
  double slept = seconds(CLOCK_MONOTONIC) - begin;
  printf("slept %d ms or more\n", slept >= 0.02 ? 20 : (int)(slept * 1000));
  struct timespec resolution;
  printf("resolution %d\n", clock_getres(CLOCK_MONOTONIC, &resolution));
  printf("wall %lld %.3f\n", (long long)time(NULL), seconds(CLOCK_REALTIME));
  return 0;
}

static int chance(void) {
  unsigned char bytes[256], zero[256] = {0};
  memset(bytes, 0, sizeof bytes);
  printf("getentropy %d\n", getentropy(bytes, sizeof bytes));
  printf("drawn %d\n", memcmp(bytes, zero, sizeof bytes) != 0);
  srand(42);
  int first = rand();
  srand(42);
  printf("rand repeats %d\n", first == rand());
  return 0;
}

int main(int argc, char **argv) {
  atexit(at_exit);
  for (int i = 0; i < argc; i++) printf("%d: %s\n", i, argv[i]);
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "env") == 0) {
    const char *name = getenv("NAME"), *empty = getenv("EMPTY");
    printf("NAME=%s EMPTY=%s NONE=%s\n", name ? name : "(none)", empty ? empty : "(none)", getenv("NONE") ? "?" : "(none)");
  }
  if (strcmp(what, "nested") == 0) return nested(5);
  if (strcmp(what, "_Exit") == 0) _Exit(9);
  if (strcmp(what, "return") == 0) return 3;
  if (strcmp(what, "abort") == 0) abort();
  if (strcmp(what, "trap") == 0) return *(volatile int *)(uintptr_t)0xfffffff0u;
  if (strcmp(what, "clocks") == 0) return clocks();
  if (strcmp(what, "chance") == 0) return chance();
  return 0;
}
