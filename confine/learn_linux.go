//go:build amd64 || arm64

package confine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A pathAt is where a call names a path: relative to the folder in argument dir, or, if there is
// none (-1), to the working directory.
type pathAt struct{ dir, path int }

func accesses(pid int, n *notification) []Access {
	switch n.Nr {
	case unix.SYS_OPENAT:
		return opened(named(pid, n, pathAt{0, 1}), uint64(n.Args[2]))
	case unix.SYS_OPENAT2:
		flags := make([]byte, 8)
		if remember(pid, n.Args[2], flags) < len(flags) {
			return nil
		}
		return opened(named(pid, n, pathAt{0, 1}), binary.NativeEndian.Uint64(flags))
	case unix.SYS_EXECVE:
		return used(AccessExecute, named(pid, n, pathAt{-1, 0}))
	case unix.SYS_EXECVEAT:
		return used(AccessExecute, named(pid, n, pathAt{0, 1}))
	case unix.SYS_TRUNCATE:
		return used(AccessWrite, named(pid, n, pathAt{-1, 0}))
	case unix.SYS_MKDIRAT, unix.SYS_UNLINKAT:
		return within(named(pid, n, pathAt{0, 1}))
	case unix.SYS_SYMLINKAT:
		return within(named(pid, n, pathAt{1, 2}))
	case unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_RENAMEAT:
		return append(within(named(pid, n, pathAt{0, 1})), within(named(pid, n, pathAt{2, 3}))...)
	case unix.SYS_CONNECT:
		return connected(pid, n)
	}
	return accessesHere(pid, n)
}

// opened returns what it takes to open path.
func opened(path string, flags uint64) []Access {
	if path == "" || flags&unix.O_PATH != 0 {
		return nil
	}
	if flags&unix.O_ACCMODE == unix.O_RDONLY && flags&(unix.O_TRUNC|unix.O_CREAT) == 0 {
		return used(AccessRead, path)
	}
	if real := used(AccessWrite, path); real != nil {
		return real
	}
	return within(path) // to be made
}

// used returns the access to what is there.
func used(kind AccessKind, path string) []Access {
	if path == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	info, err := os.Stat(real)
	return []Access{{Kind: kind, Path: real, Folder: err == nil && info.IsDir()}}
}

// within returns the access to the folder that path is in.
func within(path string) []Access {
	if path == "" {
		return nil
	}
	return used(AccessWrite, filepath.Dir(path))
}

func connected(pid int, n *notification) []Access {
	addr := make([]byte, min(n.Args[2], unix.SizeofSockaddrAny))
	if got := remember(pid, n.Args[1], addr); got < 4 {
		return nil
	}
	family, port := binary.NativeEndian.Uint16(addr), binary.BigEndian.Uint16(addr[2:])
	switch {
	case family == unix.AF_UNIX:
		return []Access{{Kind: AccessSocket, Path: fmt.Sprintf("%q", nameOfSocket(addr[2:]))}}
	case family != unix.AF_INET && family != unix.AF_INET6 || port == 0: // 0: libraries ask for the way to a host
		return nil
	}
	return []Access{{Kind: AccessConnect, Port: port}}
}

// nameOfSocket returns the name in an address: a path ends at its first NUL, behind which comes
// what happened to be in the memory of the program; an abstract name begins with one.
func nameOfSocket(name []byte) []byte {
	if end := bytes.IndexByte(name, 0); end > 0 {
		return name[:end]
	}
	return bytes.TrimRight(name, "\x00")
}

// named returns the path that a call names, absolute, or "" if it cannot be
// read.
func named(pid int, n *notification, at pathAt) string {
	b := make([]byte, unix.PathMax)
	b = b[:remember(pid, n.Args[at.path], b)]
	end := bytes.IndexByte(b, 0)
	if end <= 0 {
		return ""
	}
	path := string(b[:end])
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	from := fmt.Sprintf("/proc/%d/cwd", pid)
	if at.dir >= 0 && int32(n.Args[at.dir]) != unix.AT_FDCWD {
		from = fmt.Sprintf("/proc/%d/fd/%d", pid, int32(n.Args[at.dir]))
	}
	dir, err := os.Readlink(from)
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, path)
}

// remember reads the memory of a process into b, and returns how much there was.
func remember(pid int, address uint64, b []byte) int {
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return 0
	}
	defer mem.Close()
	n, _ := mem.ReadAt(b, int64(address)) // less at the end of what is mapped
	return n
}
