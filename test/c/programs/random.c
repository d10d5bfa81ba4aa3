// A random program of messages: each round, all ranks draw the same messages, send theirs in one of several manners, and receive
// in others. A receiver checks source, tag, length, content, and the order of messages of one source and tag.
// usage: random SEED ROUNDS
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES_MAX = 48, TAGS = 3, BYTES_MAX = 200000, RANKS_MAX = 16 };

static int rank, size;
static unsigned shared_state, own_state;
/* Of the rings, whose messages no receive of any message gets. */
static MPI_Comm apart;

/* xorshift; `shared_state` is the same in all ranks. */
static unsigned draw(unsigned *state, unsigned below) {
  unsigned x = *state;
  x ^= x << 13, x ^= x >> 17, x ^= x << 5;
  *state = x;
  return x % below;
}

typedef struct {
  int from, to, tag, bytes, sequence, is_received;
  unsigned pattern;
} Message;
static Message messages[MESSAGES_MAX];
static int count;
static unsigned char *sent[MESSAGES_MAX], *into[MESSAGES_MAX];

static int drawn_bytes(void) {
  static const unsigned most[] = {1, 9, 65, 1100, 5000, 20000, BYTES_MAX};
  return (int)draw(&shared_state, most[draw(&shared_state, 7)]);
}

static void draw_messages(void) {
  int next[RANKS_MAX][RANKS_MAX][TAGS];
  memset(next, 0, sizeof next);
  count = 1 + (int)draw(&shared_state, MESSAGES_MAX);
  for (int i = 0; i < count; i++) {
    Message *m = &messages[i];
    m->from = (int)draw(&shared_state, size), m->to = (int)draw(&shared_state, size), m->tag = (int)draw(&shared_state, TAGS);
    m->bytes = drawn_bytes(), m->sequence = next[m->from][m->to][m->tag]++, m->is_received = 0;
    m->pattern = draw(&shared_state, 1u << 30);
  }
}

static unsigned char byte_of(const Message *m, int i) { return (unsigned char)(m->pattern + (unsigned)i * 7u + ((unsigned)i >> 9)); }

static int fail(const char *what, const Message *m, const MPI_Status *status) {
  printf("rank %d: %s: from %d tag %d bytes %d sequence %d; status %d %d\n", rank, what, m->from, m->tag, m->bytes, m->sequence,
         status->MPI_SOURCE, status->MPI_TAG);
  return 0;
}

/* A message has come: the next one of its source and tag that this rank lacks. */
static int check(const unsigned char *buffer, const MPI_Status *status) {
  for (int i = 0; i < count; i++) {
    Message *m = &messages[i];
    if (m->to != rank || m->is_received || m->from != status->MPI_SOURCE || m->tag != status->MPI_TAG) continue;
    int bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    m->is_received = 1;
    if (bytes != m->bytes) return fail("length", m, status);
    for (int k = 0; k < bytes; k++)
      if (buffer[k] != byte_of(m, k)) return fail("content", m, status);
    return 1;
  }
  printf("rank %d: a message from %d with tag %d that no rank has sent\n", rank, status->MPI_SOURCE, status->MPI_TAG);
  return 0;
}

/* Source and tag of a message that this rank lacks, some of them as wildcards. */
static void wanted(int *from, int *tag) {
  int lacking[MESSAGES_MAX], left = 0;
  for (int i = 0; i < count; i++)
    if (messages[i].to == rank && !messages[i].is_received) lacking[left++] = i;
  const Message *m = &messages[lacking[draw(&own_state, left)]];
  *from = draw(&own_state, 3) ? m->from : MPI_ANY_SOURCE;
  *tag = draw(&own_state, 3) ? m->tag : MPI_ANY_TAG;
}

static int left_to_receive(void) {
  int left = 0;
  for (int i = 0; i < count; i++) left += messages[i].to == rank && !messages[i].is_received;
  return left;
}

static int receive_one(void) {
  MPI_Status status;
  MPI_Request request;
  int from, tag, flag = 0;
  wanted(&from, &tag);
  switch (draw(&own_state, 4)) {
    case 0:
      MPI_Recv(into[0], BYTES_MAX, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
      break;
    case 1:
      MPI_Irecv(into[0], BYTES_MAX, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, &status);
      break;
    case 2:
      MPI_Irecv(into[0], BYTES_MAX, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
      while (!flag) MPI_Test(&request, &flag, &status);
      break;
    default:
      while (!flag) MPI_Iprobe(from, tag, MPI_COMM_WORLD, &flag, &status);
      MPI_Recv(into[0], BYTES_MAX, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
  }
  return check(into[0], &status);
}

/* All that is left, by receives that are posted at once, and that take any message. */
static int receive_all(int left) {
  MPI_Request requests[MESSAGES_MAX];
  MPI_Status statuses[MESSAGES_MAX];
  int is_right = 1;
  for (int i = 0; i < left; i++) MPI_Irecv(into[i], BYTES_MAX, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
  if (draw(&own_state, 2)) MPI_Waitall(left, requests, statuses);
  else {
    for (int done = 0, at; done < left; done++) {
      MPI_Status status;
      MPI_Waitany(left, requests, &at, &status);
      statuses[at] = status;
    }
  }
  for (int i = 0; i < left; i++) is_right &= check(into[i], &statuses[i]);
  return is_right;
}

/* Begins to send. Long blocking sends could wait for a rank that sends, too; so blocking ones are short, or to no other rank. */
static int send_all(MPI_Request *requests) {
  int begun = 0;
  for (int i = 0; i < count; i++) {
    Message *m = &messages[i];
    if (m->from != rank) continue;
    for (int k = 0; k < m->bytes; k++) sent[i][k] = byte_of(m, k);
    switch (draw(&own_state, 4)) {
      case 0:
        if (m->bytes <= 1024) {
          MPI_Send(sent[i], m->bytes, MPI_BYTE, m->to, m->tag, MPI_COMM_WORLD);
          break;
        } /* fall through */
      case 1:
        MPI_Issend(sent[i], m->bytes, MPI_BYTE, m->to, m->tag, MPI_COMM_WORLD, &requests[begun++]);
        break;
      default:
        MPI_Isend(sent[i], m->bytes, MPI_BYTE, m->to, m->tag, MPI_COMM_WORLD, &requests[begun++]);
    }
  }
  return begun;
}

/* Around the ring, both directions in one call. */
static int ring(int bytes) {
  MPI_Status status;
  int to = (rank + 1) % size, from = (rank + size - 1) % size, got;
  memset(sent[0], rank + 1, bytes);
  MPI_Sendrecv(sent[0], bytes, MPI_BYTE, to, 9, into[0], BYTES_MAX, MPI_BYTE, from, 9, apart, &status);
  MPI_Get_count(&status, MPI_BYTE, &got);
  return got == bytes && status.MPI_SOURCE == from && (bytes == 0 || (into[0][0] == from + 1 && into[0][bytes - 1] == from + 1));
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &apart);
  unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
  int rounds = argc > 2 ? atoi(argv[2]) : 50, right = 0;
  shared_state = seed * 2654435761u | 1, own_state = (seed + 77u * (unsigned)(rank + 1)) * 2246822519u | 1;
  for (int i = 0; i < MESSAGES_MAX; i++) sent[i] = malloc(BYTES_MAX), into[i] = malloc(BYTES_MAX);
  for (int round = 0; round < rounds; round++) {
    MPI_Request requests[MESSAGES_MAX];
    draw_messages();
    int is_right = 1, begun = send_all(requests);
    for (int left = left_to_receive(); left > 0; left = left_to_receive())
      is_right &= draw(&own_state, 6) ? receive_one() : receive_all(left);
    MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
    is_right &= ring(drawn_bytes());
    if (draw(&shared_state, 3) == 0) {
      int sum = 0;
      MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      is_right &= sum == size * (size - 1) / 2;
    } else MPI_Barrier(MPI_COMM_WORLD);
    right += is_right;
  }
  int all = 0;
  MPI_Reduce(&right, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d of %d rounds\n", all, rounds * size);
  MPI_Finalize();
}
