// A ring for one producer and one consumer that does what am_rate and am_bw do: the producer copies each payload in
// behind a length word and publishes it, the consumer touches every cache line of it and gives the space back; after
// 64 messages comes an answer.
// ring CPU0 CPU1 SECONDS BYTES RING_BYTES → messages per second
#include "common.h"
#include <pthread.h>
#include <stdatomic.h>

/** Windows from one look at the clock to the next. */
#define CLOCK_WINDOWS 16

static _Alignas(128) _Atomic uint64_t tail;
static _Alignas(128) _Atomic uint64_t head;
static _Alignas(128) _Atomic uint64_t answers;
static _Alignas(128) atomic_int stop;
static uint8_t *ring;
static size_t capacity, record, bytes;
static int cpus[2];
static volatile uint32_t sink;

// A record is contiguous: one that begins near the end runs on behind it, where there is space for one more.
static void *consume(void *unused) {
  (void)unused;
  pin(cpus[1]);
  uint64_t position = 0, seen = 0, messages = 0;
  uint32_t sum = 0;
  for (;;) {
    seen = atomic_load_explicit(&tail, memory_order_acquire);
    if (seen == position) {
      if (atomic_load_explicit(&stop, memory_order_relaxed)) break;
      relax();
      continue;
    }
    while (position != seen) {
      const uint8_t *at = ring + (position & (capacity - 1));
      size_t length = *(const volatile uint32_t *)at;
      sum += touch(at + 8, length);
      position += record;
      if (++messages % WINDOW == 0) atomic_store_explicit(&answers, messages / WINDOW, memory_order_release);
    }
    atomic_store_explicit(&head, position, memory_order_release);
  }
  sink = sum;
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 6) return 2;
  cpus[0] = atoi(arguments[1]);
  cpus[1] = atoi(arguments[2]);
  double seconds = atof(arguments[3]);
  bytes = strtoull(arguments[4], NULL, 10);
  capacity = strtoull(arguments[5], NULL, 10);
  record = (bytes + 8 + 15) & ~(size_t)15;
  ring = aligned_alloc(4096, (capacity + record + 4095) & ~(size_t)4095);
  uint8_t *payload = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
  memset(ring, 0, capacity + record);
  memset(payload, 1, bytes);
  pthread_t other;
  pthread_create(&other, NULL, consume, NULL);
  pin(cpus[0]);
  uint64_t position = 0, known = 0, windows = 0, counted = 0;
  double begin = now_ns(), start = 0, over = begin;
  while (start == 0 || over < start + seconds * 1e9) {
    for (int i = 0; i < WINDOW; i++) {
      while (position + record - known > capacity) known = atomic_load_explicit(&head, memory_order_acquire);
      uint8_t *at = ring + (position & (capacity - 1));
      memcpy(at + 8, payload, bytes);
      *(volatile uint32_t *)at = (uint32_t)bytes;
      position += record;
      atomic_store_explicit(&tail, position, memory_order_release);
    }
    windows++;
    while (atomic_load_explicit(&answers, memory_order_acquire) != windows) relax();
    if (windows % CLOCK_WINDOWS != 0) continue;
    over = now_ns();
    if (start != 0) counted += CLOCK_WINDOWS * WINDOW;
    else if (over > begin + seconds * 2e8) start = over;
  }
  atomic_store(&stop, 1);
  pthread_join(other, NULL);
  print_rate((double)counted, over - start);
  return 0;
}
