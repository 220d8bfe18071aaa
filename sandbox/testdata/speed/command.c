// A WASI command that answers with its request.
//
//   clang --target=wasm32-wasi -O2 -o command.wasm command.c
#include <unistd.h>

int main(void) {
	static char buf[1 << 16];
	ssize_t size = 0, n;
	while ((n = read(0, buf + size, sizeof buf - size)) > 0) size += n;
	return write(1, buf, size) == size ? 0 : 1;
}
