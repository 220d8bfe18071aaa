package compiler

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// executable is the running program, also if its file was replaced or removed.
func executable() (string, error) { return "/proc/self/exe", nil }

// limitMemory bounds how many bytes this process can write to, in addition to those that it has
// mapped. Under the race detector these are more than any limit.
func limitMemory(more uint64) error {
	most := mapped() + more
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}

// mapped is how many bytes RLIMIT_DATA counts of this process now.
func mapped() uint64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmData:" {
			kib, _ := strconv.ParseUint(f[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
