// The loops that a C programmer would write, for bench/reduction.bench.mjs: prints nanoseconds a call of the named one, the
// median of many. Compiled with -O3. Usage: loops NAME COUNT CALLS
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

#define REDUCE(name, type, result)                                                    \
  __attribute__((noinline)) static void name(type *out, const type *in, size_t count) { \
    for (size_t i = 0; i < count; i++) {                                              \
      const type a = out[i], b = in[i];                                               \
      out[i] = result;                                                                \
    }                                                                                 \
  }

REDUCE(sum_f64, double, a + b)
REDUCE(sum_i32, int32_t, a + b)
REDUCE(min_f32, float, a < b ? a : b)
REDUCE(max_i64, int64_t, a > b ? a : b)

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const char *name = argv[1];
  const size_t count = strtoul(argv[2], NULL, 10);
  const size_t calls = strtoul(argv[3], NULL, 10);
  void *out = aligned_alloc(4096, count * 8), *in = aligned_alloc(4096, count * 8);
  double *times = malloc(calls * sizeof(double));
  memset(out, 0, count * 8);
  memset(in, 0, count * 8);
  for (size_t i = 0; i < calls; i++) {
    const double start = now();
    if (strcmp(name, "sum_f64") == 0) sum_f64(out, in, count);
    else if (strcmp(name, "sum_i32") == 0) sum_i32(out, in, count);
    else if (strcmp(name, "min_f32") == 0) min_f32(out, in, count);
    else if (strcmp(name, "max_i64") == 0) max_i64(out, in, count);
    else return 2;
    times[i] = now() - start;
  }
  qsort(times, calls, sizeof(double), compare);
  printf("%.1f\n", times[calls / 2]);
  return 0;
}
