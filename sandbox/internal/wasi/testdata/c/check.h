// CHECK ends the program with the place of what does not hold.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wasi/api.h>

#define CHECK(what)                                                                 \
  do {                                                                              \
    errno = 0;                                                                      \
    if (!(what)) {                                                                  \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, strerror(errno)); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

#define FAILS(what, code) CHECK((what) == -1 && errno == (code))
