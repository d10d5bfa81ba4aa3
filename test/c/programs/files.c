/* What C programs do with files. Each step prints its result; the same text for files of a host and in memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *says(long result) {
  static char text[64];
  snprintf(text, sizeof text, "%ld %s", result, result < 0 ? strerror(errno) : "");
  return text;
}

static void show(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    printf("%s: %s\n", path, strerror(errno));
    return;
  }
  char bytes[64];
  size_t count = fread(bytes, 1, sizeof bytes, file);
  printf("%s: %zu bytes:", path, count);
  for (size_t i = 0; i < count; i++) bytes[i] >= ' ' ? printf(" %c", bytes[i]) : printf(" %02x", bytes[i]);
  printf("\n");
  fclose(file);
}

static void put(const char *path, const char *mode, const char *text) {
  FILE *file = fopen(path, mode);
  if (file == NULL) {
    printf("fopen %s %s: %s\n", path, mode, strerror(errno));
    return;
  }
  fputs(text, file);
  if (fclose(file) != 0) printf("fclose %s\n", strerror(errno));
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void list(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) {
    printf("opendir %s: %s\n", path, strerror(errno));
    return;
  }
  char *names[256];
  int count = 0;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL && count < 256;) {
    const char *kind = entry->d_type == DT_DIR ? "/" : entry->d_type == DT_LNK ? "@" : "";
    size_t bytes = strlen(entry->d_name) + 2;
    names[count] = malloc(bytes);
    snprintf(names[count++], bytes, "%s%s", entry->d_name, kind);
  }
  closedir(folder);
  qsort(names, count, sizeof *names, by_name);
  printf("%s has", path);
  for (int i = 0; i < count; i++) printf(" %s", names[i]);
  printf("\n");
}

static void bytes_of_files(void) {
  put("a.txt", "w", "hello");
  show("a.txt");
  put("a.txt", "a", " again");
  show("a.txt");
  FILE *file = fopen("a.txt", "r+");
  fseek(file, -2, SEEK_END);
  printf("ftell %ld\n", ftell(file));
  fputc('X', file);
  fseek(file, 14, SEEK_SET);
  fputc('!', file);
  rewind(file);
  printf("first %c\n", fgetc(file));
  fclose(file);
  show("a.txt");
  printf("truncate %s\n", says(truncate("a.txt", 3)));
  show("a.txt");
  put("a.txt", "w", "");
  show("a.txt");
  put("a.txt", "wx", "no");
  int fd = open("b.bin", O_CREAT | O_RDWR | O_TRUNC, 0600);
  printf("pwrite %s\n", says(pwrite(fd, "four", 4, 2)));
  char four[8] = {0};
  printf("pread %s\n", says(pread(fd, four, 4, 2)));
  printf("%s, lseek %s\n", four, says(lseek(fd, 0, SEEK_CUR)));
  printf("lseek %s\n", says(lseek(fd, -1, SEEK_SET)));
  printf("ftruncate %s\n", says(ftruncate(fd, 8)));
  printf("fallocate %s\n", says(posix_fallocate(fd, 0, 10)));
  printf("fsync %s\n", says(fsync(fd)));
  close(fd);
  show("b.bin");
  fd = open("b.bin", O_RDONLY);
  printf("write to a file that is read: %s\n", says(write(fd, "x", 1)));
  close(fd);
  printf("read what is closed: %s\n", says(read(fd, four, 1)));
}

static void names_of_files(void) {
  printf("mkdir %s\n", says(mkdir("d", 0777)));
  printf("mkdir %s\n", says(mkdir("d", 0777)));
  put("d/one", "w", "1");
  put("d/two", "w", "22");
  list("d");
  list(".");
  printf("rename %s\n", says(rename("d/one", "d/three")));
  printf("rename %s\n", says(rename("d/none", "d/four")));
  printf("rename %s\n", says(rename("d/three", "d/two")));
  show("d/two");
  printf("rmdir %s\n", says(rmdir("d")));
  printf("unlink %s\n", says(unlink("d")));
  printf("rmdir %s\n", says(rmdir("d/two")));
  printf("symlink %s\n", says(symlink("two", "d/link")));
  printf("symlink %s\n", says(symlink("link", "d/second")));
  show("d/second");
  char target[16] = {0};
  printf("readlink %s %s\n", says(readlink("d/link", target, sizeof target)), target);
  printf("link %s\n", says(link("d/two", "d/hard")));
  struct stat status;
  printf("stat %s\n", says(stat("d/hard", &status)));
  printf("%lld bytes, %d links, file %d\n", (long long)status.st_size, (int)status.st_nlink, S_ISREG(status.st_mode) != 0);
  printf("lstat %s", says(lstat("d/link", &status)));
  printf("link %d\n", S_ISLNK(status.st_mode) != 0);
  printf("stat %s", says(stat("d", &status)));
  printf("folder %d\n", S_ISDIR(status.st_mode) != 0);
  printf("stat %s\n", says(stat("d/two/x", &status)));
  printf("stat %s\n", says(stat("none", &status)));
  list("d");
  list("d/two");
  struct timespec times[2] = {{1000, 0}, {2000000000, 500000000}};
  printf("utimensat %s\n", says(utimensat(AT_FDCWD, "d/two", times, 0)));
  stat("d/hard", &status);
  printf("%lld %lld.%ld\n", (long long)status.st_atim.tv_sec, (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

/* More entries than one call of readdir has room for. */
static void many(void) {
  mkdir("many", 0777);
  char name[40];
  for (int i = 0; i < 200; i++) {
    snprintf(name, sizeof name, "many/a name of some length %03d", i);
    put(name, "w", "");
  }
  DIR *folder = opendir("many");
  int count = 0, removed = 0;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL; count++)
    if (entry->d_name[0] == 'a') removed += unlinkat(dirfd(folder), entry->d_name, 0) == 0;
  closedir(folder);
  printf("%d entries, %d removed, rmdir %s\n", count, removed, says(rmdir("many")));
}

int main(void) {
  show("given.txt");
  bytes_of_files();
  names_of_files();
  many();
  remove("d/link");
  remove("d/second");
  remove("d/hard");
  remove("d/two");
  printf("remove %s\n", says(remove("d")));
  list(".");
  return 0;
}
