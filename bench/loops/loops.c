// The loops that a C programmer would write, for bench/loops.bench.mjs: prints nanoseconds a call of the named one, the median
// of many batches. Compiled with -O3. Usage: loops NAME COUNT [STRIDE] CALLS
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

/** A column of `count` blocks of `bytes` bytes, `stride` bytes apart, and its blocks one behind the other. */
#define COLUMN(name, bytes, to, from)                                                            \
  __attribute__((noinline)) static void name(char *packed, char *grid, size_t count, size_t stride) { \
    for (size_t i = 0; i < count; i++) memcpy(to, from, bytes);                                  \
  }

COLUMN(pack_f64, 8, packed + 8 * i, grid + stride * i)
COLUMN(unpack_f64, 8, grid + stride * i, packed + 8 * i)
COLUMN(pack_24, 24, packed + 24 * i, grid + stride * i)

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  const char *name = argv[1];
  const size_t count = strtoul(argv[2], NULL, 10);
  const size_t stride = argc > 4 ? strtoul(argv[3], NULL, 10) : 0;
  const size_t calls = strtoul(argv[argc - 1], NULL, 10);
  // Short loops are timed together: reading the clock takes as long as some of them.
  const size_t batch = calls > 1000 ? 100 : 1;
  const size_t bytes = stride == 0 ? count * 8 : count * stride;
  void *out = aligned_alloc(4096, count * 24), *in = aligned_alloc(4096, bytes);
  double *times = malloc(calls / batch * sizeof(double));
  memset(out, 0, count * 24);
  memset(in, 0, bytes);
  for (size_t i = 0; i < calls / batch; i++) {
    const double start = now();
    for (size_t j = 0; j < batch; j++) {
      if (strcmp(name, "sum_f64") == 0) sum_f64(out, in, count);
      else if (strcmp(name, "sum_i32") == 0) sum_i32(out, in, count);
      else if (strcmp(name, "min_f32") == 0) min_f32(out, in, count);
      else if (strcmp(name, "max_i64") == 0) max_i64(out, in, count);
      else if (strcmp(name, "pack_f64") == 0) pack_f64(out, in, count, stride);
      else if (strcmp(name, "unpack_f64") == 0) unpack_f64(out, in, count, stride);
      else if (strcmp(name, "pack_24") == 0) pack_24(out, in, count, stride);
      else return 2;
    }
    times[i] = (now() - start) / batch;
  }
  qsort(times, calls / batch, sizeof(double), compare);
  printf("%.1f\n", times[calls / batch / 2]);
  return 0;
}
