// What libc makes of the fd_ calls and path_open. argv[1] is a directory.
#include "check.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static void readwrite(void) {
  char buf[64];
  int fd = open("file", O_CREAT | O_EXCL | O_RDWR, 0644);
  CHECK(fd >= 0);
  FAILS(open("file", O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
  CHECK(write(fd, "hello world", 11) == 11);
  CHECK(lseek(fd, 0, SEEK_CUR) == 11);
  CHECK(lseek(fd, -5, SEEK_END) == 6);
  CHECK(read(fd, buf, sizeof buf) == 5 && !memcmp(buf, "world", 5));
  CHECK(read(fd, buf, sizeof buf) == 0);
  FAILS(lseek(fd, -1, SEEK_SET), EINVAL);
  CHECK(pwrite(fd, "W", 1, 6) == 1);
  CHECK(pread(fd, buf, 5, 6) == 5 && !memcmp(buf, "World", 5));
  struct iovec parts[3] = {{"ab", 2}, {"", 0}, {"cd", 2}};
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  CHECK(writev(fd, parts, 3) == 4);
  char one[3], two[3];
  struct iovec into[2] = {{one, 3}, {two, 3}};
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  CHECK(readv(fd, into, 2) == 6 && !memcmp(one, "abc", 3) && !memcmp(two, "do ", 3));
  CHECK(pwritev(fd, parts, 3, 2) == 4);
  CHECK(preadv(fd, into, 2, 2) == 6 && !memcmp(one, "abc", 3));
  CHECK(ftruncate(fd, 3) == 0);
  CHECK(posix_fallocate(fd, 0, 8) == 0);
  struct stat s;
  CHECK(fstat(fd, &s) == 0 && s.st_size == 8 && S_ISREG(s.st_mode));
  CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL) == 0);
  CHECK(fsync(fd) == 0 && fdatasync(fd) == 0);
  struct timespec times[2] = {{1000000000, 0}, {1000000001, 5000}};
  CHECK(futimens(fd, times) == 0);
  CHECK(fstat(fd, &s) == 0 && s.st_mtim.tv_sec == 1000000001 && s.st_atim.tv_sec == 1000000000);
  CHECK(close(fd) == 0);
  FAILS(close(fd), EBADF);
  FAILS(read(fd, buf, 1), EBADF);
}

static void modes(void) {
  char c;
  int fd = open("file", O_RDONLY);
  CHECK(fd >= 0);
  FAILS(write(fd, "x", 1), EBADF);
  CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
  CHECK(close(fd) == 0);
  CHECK((fd = open("file", O_WRONLY | O_TRUNC)) >= 0);
  FAILS(read(fd, &c, 1), EBADF);
  CHECK(write(fd, "12", 2) == 2);
  CHECK(close(fd) == 0);
  CHECK((fd = open("file", O_RDWR | O_APPEND)) >= 0);
  CHECK(write(fd, "3", 1) == 1);
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  CHECK(write(fd, "4", 1) == 1);
  CHECK(fcntl(fd, F_GETFL) & O_APPEND);
  CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
  CHECK(pwrite(fd, "0", 1, 0) == 1);
  char buf[8];
  CHECK(pread(fd, buf, 8, 0) == 4 && !memcmp(buf, "0234", 4));
  CHECK(close(fd) == 0);
  FAILS(open("file", O_RDONLY | O_DIRECTORY), ENOTDIR);
  FAILS(open("missing", O_RDONLY), ENOENT);
  FAILS(open("../secret", O_RDONLY), EPERM);
}

static void streams(void) {
  FILE *f = fopen("stdio", "w+");
  CHECK(f);
  for (int i = 0; i < 5000; i++)
    fprintf(f, "%d\n", i);
  rewind(f);
  long sum = 0, n;
  while (fscanf(f, "%ld", &n) == 1)
    sum += n;
  CHECK(sum == 4999 * 2500);
  CHECK(fclose(f) == 0);
}

static void renumber(void) {
  int a = open("file", O_RDONLY), b = open("stdio", O_RDONLY);
  char c;
  CHECK(a >= 0 && b >= 0);
  CHECK(__wasi_fd_renumber(a, b) == 0);
  CHECK(read(b, &c, 1) == 1 && c == '0');
  FAILS(read(a, &c, 1), EBADF);
  CHECK(close(b) == 0);
}

static void rights(void) {
  __wasi_fdstat_t s;
  int fd = open("file", O_RDWR);
  CHECK(fd >= 0 && __wasi_fd_fdstat_get(fd, &s) == 0);
  CHECK(s.fs_filetype == __WASI_FILETYPE_REGULAR_FILE && s.fs_rights_base & __WASI_RIGHTS_FD_WRITE);
  CHECK(__wasi_fd_fdstat_set_rights(fd, __WASI_RIGHTS_FD_READ, 0) == 0);
  CHECK(__wasi_fd_fdstat_set_rights(fd, s.fs_rights_base, 0) == __WASI_ERRNO_NOTCAPABLE);
  FAILS(write(fd, "x", 1), EBADF);
  __wasi_filesize_t at;
  CHECK(__wasi_fd_seek(fd, 0, __WASI_WHENCE_SET, &at) == __WASI_ERRNO_NOTCAPABLE);
  CHECK(close(fd) == 0);
}

int main(int argc, char **argv) {
  CHECK(argc == 2 && chdir(argv[1]) == 0);
  readwrite();
  modes();
  streams();
  renumber();
  rights();
  puts("ok");
}
