/* Each argument is a path that leads, or may lead, out of the folders that the program was given. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *name(int result) { return result >= 0 ? "open" : strerror(errno); }

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    struct stat status;
    printf("%s: ", argv[i]);
    int fd = open(argv[i], O_RDONLY);
    printf("read %s, ", name(fd));
    if (fd >= 0) close(fd);
    fd = open(argv[i], O_WRONLY | O_CREAT, 0600);
    printf("write %s, ", name(fd));
    if (fd >= 0) close(fd);
    printf("stat %s, ", name(stat(argv[i], &status)));
    printf("mkdir %s, ", name(mkdir(argv[i], 0700)));
    printf("rename %s, ", name(rename("own", argv[i])));
    printf("link %s, ", name(link("own", argv[i])));
    printf("unlink %s\n", name(unlink(argv[i])));
  }
  printf("symlink %s\n", name(symlink("/etc/passwd", "made")));
  return 0;
}
