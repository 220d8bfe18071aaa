package audit_test

import (
	"fmt"
	"syscall"
)

func mountSmall(dir string, size int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", size))
}

func unmount(dir string) error { return syscall.Unmount(dir, 0) }
