// What the peers share: time, pinning, percentiles of batches. The methods are those of `pamir perf` itself.
#ifndef PEERS_COMMON_H
#define PEERS_COMMON_H
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CACHE_LINE 64
#define WINDOW 64

static inline double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

/** Binds the calling thread to a processor; a negative number: leaves it free. */
static inline void pin(int cpu) {
#ifdef __linux__
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
#else
  (void)cpu;
#endif
}

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/** Reads one byte of every cache line, so that the data has arrived here. */
static inline uint32_t touch(const volatile uint8_t *bytes, size_t length) {
  uint32_t sum = 0;
  for (size_t i = 0; i < length; i += CACHE_LINE) sum += bytes[i];
  return sum;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/** What reading the clock twice in a row costs: median of 1001. */
static inline double timer_cost(void) {
  static double samples[1001];
  for (int i = 0; i < 1001; i++) {
    double start = now_ns();
    samples[i] = now_ns() - start;
  }
  qsort(samples, 1001, sizeof(double), ascending);
  return samples[500];
}

/** Prints percentiles as one JSON object. */
static inline void print_percentiles(double *samples, size_t count) {
  qsort(samples, count, sizeof(double), ascending);
  const double ranks[] = {0.5, 0.9, 0.99, 0.999};
  const char *names[] = {"p50_ns", "p90_ns", "p99_ns", "p999_ns"};
  printf("{");
  for (int i = 0; i < 4; i++) {
    size_t at = (size_t)(ranks[i] * (count - 1) + 0.5);
    printf("%s\"%s\":%.3f", i ? "," : "", names[i], samples[at]);
  }
  printf("}\n");
}

static inline void print_rate(double messages, double nanoseconds) {
  printf("{\"messages_per_s\":%.1f}\n", messages / nanoseconds * 1e9);
}
#endif
