// The limit: two threads hand a number to each other through two flags on lines of their own, spinning.
// handoff CPU0 CPU1 SECONDS → percentiles of half a round trip
#include "common.h"
#include <pthread.h>
#include <stdatomic.h>

#define BATCH 16
#define SAMPLES_MAX 2000000

static _Alignas(128) atomic_uint ping;
static _Alignas(128) atomic_uint pong;
static _Alignas(128) atomic_uint stop;
static int cpus[2];
static double samples[SAMPLES_MAX];

static void *follow(void *unused) {
  (void)unused;
  pin(cpus[1]);
  for (unsigned i = 1; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
    while (atomic_load_explicit(&ping, memory_order_acquire) != i) {
      if (atomic_load_explicit(&stop, memory_order_relaxed)) return NULL;
    }
    atomic_store_explicit(&pong, i, memory_order_release);
  }
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 4) return 2;
  cpus[0] = atoi(arguments[1]);
  cpus[1] = atoi(arguments[2]);
  double seconds = atof(arguments[3]);
  pthread_t other;
  pthread_create(&other, NULL, follow, NULL);
  pin(cpus[0]);
  double cost = timer_cost();
  double begin = now_ns(), warm = begin + seconds * 2e8, end = begin + seconds * 1.2e9;
  size_t taken = 0;
  for (unsigned i = 0; taken < SAMPLES_MAX;) {
    double start = now_ns();
    for (int k = 0; k < BATCH; k++) {
      atomic_store_explicit(&ping, ++i, memory_order_release);
      while (atomic_load_explicit(&pong, memory_order_acquire) != i) {}
    }
    double over = now_ns();
    if (over > warm) samples[taken++] = (over - start - cost) / (2 * BATCH);
    if (over > end) break;
  }
  atomic_store(&stop, 1);
  pthread_join(other, NULL);
  print_percentiles(samples, taken);
  return 0;
}
