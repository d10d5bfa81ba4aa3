// The limit of a wake-up: two threads hand a number to each other through two futexes, and each sleeps until it is woken.
// futex CPU0 CPU1 SECONDS → percentiles of half a round trip
#include "common.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SAMPLES_MAX 1000000

static _Alignas(128) atomic_uint ping;
static _Alignas(128) atomic_uint pong;
static atomic_uint stop;
static int cpus[2];
static double samples[SAMPLES_MAX];

static void await(atomic_uint *word, unsigned number) {
  for (unsigned seen; (seen = atomic_load(word)) != number;) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
  }
}

static void wake(atomic_uint *word, unsigned number) {
  atomic_store(word, number);
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *follow(void *unused) {
  (void)unused;
  pin(cpus[1]);
  for (unsigned i = 1; !atomic_load(&stop); i++) {
    await(&ping, i);
    wake(&pong, i);
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
  for (unsigned i = 1;; i++) {
    double start = now_ns();
    // The other one looks at it behind its last wake-up.
    if (start > end || taken == SAMPLES_MAX) atomic_store(&stop, 1);
    wake(&ping, i);
    await(&pong, i);
    if (atomic_load(&stop)) break;
    if (start > warm) samples[taken++] = (now_ns() - start - cost) / 2;
  }
  pthread_join(other, NULL);
  print_percentiles(samples, taken);
  return 0;
}
