/* Standard streams: lines as they are written, numbers as they are read. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  printf("terminal %d %d %d\n", isatty(0), isatty(1), isatty(2));
  printf("half a line, ");
  fprintf(stderr, "error %d\n", 1);
  printf("and its end\n");
  int sum = 0, number, numbers = 0;
  char word[32];
  while (scanf("%d", &number) == 1) sum += number, numbers++;
  printf("%d numbers, sum %d\n", numbers, sum);
  if (scanf("%31s", word) == 1) printf("word %s\n", word);
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) printf("line of %zu bytes\n", strlen(line));
  printf("end of input %d\n", feof(stdin) != 0);
  printf("lseek %ld %s\n", (long)lseek(1, 0, SEEK_CUR), strerror(errno));
  struct pollfd ready = {.fd = 1, .events = POLLOUT};
  printf("poll %d %d\n", poll(&ready, 1, 1000), (ready.revents & POLLOUT) != 0);
  close(2);
  printf("closed %ld %s\n", (long)write(2, "x", 1), strerror(errno));
  printf("no newline at the end");
  return 0;
}
