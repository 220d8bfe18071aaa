// What needs no files: arguments, environment, clocks, random numbers, waiting.
// It reads a word from stdin and exits with 42.
#include "check.h"
#include <poll.h>
#include <sched.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static void clocks(void) {
  struct timespec step, a, b, wait = {0, 20000000};
  CHECK(clock_getres(CLOCK_MONOTONIC, &step) == 0 && step.tv_nsec == 1000000);
  CHECK(clock_gettime(CLOCK_REALTIME, &a) == 0 && a.tv_sec > 1600000000 && a.tv_nsec % step.tv_nsec == 0);
  CHECK(clock_gettime(CLOCK_MONOTONIC, &a) == 0);
  CHECK(nanosleep(&wait, NULL) == 0);
  CHECK(clock_nanosleep(CLOCK_REALTIME, 0, &wait, NULL) == 0);
  CHECK(clock_gettime(CLOCK_MONOTONIC, &b) == 0);
  long long took = (b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec;
  CHECK(took >= 38000000);
  __wasi_timestamp_t now;
  CHECK(__wasi_clock_time_get(__WASI_CLOCKID_PROCESS_CPUTIME_ID, 0, &now) == __WASI_ERRNO_NOTSUP);
  CHECK(__wasi_clock_res_get(__WASI_CLOCKID_THREAD_CPUTIME_ID, &now) == __WASI_ERRNO_NOTSUP);
}

static void waiting(void) {
  struct pollfd p[2] = {{0, POLLIN}, {1, POLLOUT}};
  CHECK(poll(p, 2, 1000) == 2 && p[0].revents & POLLIN && p[1].revents & POLLOUT);
  fd_set in;
  FD_ZERO(&in);
  FD_SET(0, &in);
  struct timeval t = {1, 0};
  CHECK(select(1, &in, NULL, NULL, &t) == 1);
  CHECK(poll(NULL, 0, 5) == 0);
}

static void unsupported(void) {
  __wasi_fd_t fd;
  __wasi_size_t n;
  __wasi_roflags_t flags;
  __wasi_iovec_t in = {0};
  __wasi_ciovec_t out = {0};
  CHECK(__wasi_sock_recv(0, &in, 1, 0, &n, &flags) == __WASI_ERRNO_NOTSOCK);
  CHECK(__wasi_sock_send(1, &out, 1, 0, &n) == __WASI_ERRNO_NOTSOCK);
  CHECK(__wasi_sock_shutdown(0, __WASI_SDFLAGS_RD) == __WASI_ERRNO_NOTSOCK);
  CHECK(__wasi_sock_accept(99, 0, &fd) == __WASI_ERRNO_BADF);
}

int main(int argc, char **argv) {
  char word[16], a[16] = {0}, b[16] = {0};
  CHECK(argc == 3 && !strcmp(argv[0], "tool") && !strcmp(argv[1], "") && !strcmp(argv[2], "größe"));
  CHECK(getenv("KEY") && !strcmp(getenv("KEY"), "value") && !getenv("PATH"));
  clocks();
  waiting();
  unsupported();
  CHECK(getentropy(a, 16) == 0 && getentropy(b, 16) == 0 && memcmp(a, b, 16));
  CHECK(sched_yield() == 0);
  CHECK(!isatty(0) && !isatty(1));
  CHECK(lseek(0, 0, SEEK_CUR) == -1 && errno == ESPIPE);
  CHECK(scanf("%15s", word) == 1 && !strcmp(word, "hello"));
  puts("ok");
  fflush(stdout);
  _Exit(42);
}
