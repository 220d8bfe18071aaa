// What libc makes of the path_ calls and fd_readdir. argv[1] is a directory.
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void names(void) {
  struct stat s, t;
  char buf[64];
  CHECK(mkdir("dir", 0755) == 0);
  FAILS(mkdir("dir", 0755), EEXIST);
  CHECK(close(open("dir/file", O_CREAT | O_WRONLY, 0644)) == 0);
  FAILS(rmdir("dir"), ENOTEMPTY);
  FAILS(unlink("dir"), EISDIR);
  CHECK(link("dir/file", "hard") == 0);
  CHECK(stat("dir/file", &s) == 0 && stat("hard", &t) == 0);
  CHECK(s.st_ino == t.st_ino && s.st_nlink == 2);
  CHECK(symlink("dir/file", "soft") == 0);
  FAILS(symlink("../secret", "out"), EPERM);
  FAILS(symlink("/etc/passwd", "out"), EPERM);
  CHECK(readlink("soft", buf, sizeof buf) == 8 && !memcmp(buf, "dir/file", 8));
  CHECK(lstat("soft", &t) == 0 && S_ISLNK(t.st_mode));
  CHECK(stat("soft", &t) == 0 && S_ISREG(t.st_mode) && t.st_ino == s.st_ino);
  struct timespec times[2] = {{5, 0}, {6, 0}};
  CHECK(utimensat(AT_FDCWD, "soft", times, 0) == 0);
  CHECK(stat("hard", &t) == 0 && t.st_atim.tv_sec == 5 && t.st_mtim.tv_sec == 6);
  CHECK(rename("hard", "dir/hard") == 0);
  FAILS(stat("hard", &t), ENOENT);
  CHECK(unlink("soft") == 0 && unlink("dir/hard") == 0);
  CHECK(access("dir/file", R_OK) == 0);
  FAILS(rename("dir", "../dir"), EPERM);
}

static void relative(void) {
  int fd = open("dir", O_RDONLY | O_DIRECTORY);
  CHECK(fd >= 0);
  int file = openat(fd, "below", O_CREAT | O_RDWR, 0644);
  CHECK(file >= 0 && close(file) == 0);
  FAILS(openat(fd, "../dir/below", O_RDONLY), EPERM);
  CHECK(renameat(fd, "below", AT_FDCWD, "above") == 0);
  CHECK(unlinkat(AT_FDCWD, "above", 0) == 0);
  CHECK(mkdirat(fd, "inner", 0755) == 0 && unlinkat(fd, "inner", AT_REMOVEDIR) == 0);
  CHECK(close(fd) == 0);
}

static int count(DIR *d) {
  int n = 0;
  while (readdir(d))
    n++;
  return n;
}

static void directories(void) {
  char name[64];
  for (int i = 0; i < 200; i++) {
    snprintf(name, sizeof name, "dir/a-rather-long-name-of-a-file-%d", i);
    CHECK(close(open(name, O_CREAT | O_WRONLY, 0644)) == 0);
  }
  DIR *d = opendir("dir");
  CHECK(d);
  CHECK(count(d) == 203); // with . and .. and file
  rewinddir(d);
  for (int i = 0; i < 50; i++)
    CHECK(readdir(d));
  long here = telldir(d);
  struct dirent *next = readdir(d);
  CHECK(next);
  strcpy(name, next->d_name);
  CHECK(count(d) == 152);
  seekdir(d, here);
  CHECK((next = readdir(d)) && !strcmp(next->d_name, name) && next->d_type == DT_REG);
  CHECK(closedir(d) == 0);
  FAILS(!opendir("dir/file") ? -1 : 0, ENOTDIR);
}

int main(int argc, char **argv) {
  CHECK(argc == 2 && chdir(argv[1]) == 0);
  names();
  relative();
  directories();
  puts("ok");
}
