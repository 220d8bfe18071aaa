//go:build unix

package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// TryLock takes the lock of an open file or folder, which is held until it is closed or
// the process ends. It is false if another has it.
func TryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return true, nil
}

// openBeside opens what is locked: the folder of path, which leaves no file behind.
func openBeside(path string) (*os.File, error) { return os.Open(filepath.Dir(path)) }
