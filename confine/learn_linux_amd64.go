package confine

import "golang.org/x/sys/unix"

// accessesHere knows the calls that newer architectures do not have.
func accessesHere(pid int, n *notification) []Access {
	path := func(i int) string { return named(pid, n, pathAt{-1, i}) }
	switch n.Nr {
	case unix.SYS_OPEN:
		return opened(path(0), n.Args[1])
	case unix.SYS_CREAT:
		return opened(path(0), unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	case unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK:
		return within(path(0))
	case unix.SYS_SYMLINK:
		return within(path(1))
	case unix.SYS_RENAME, unix.SYS_LINK:
		return append(within(path(0)), within(path(1))...)
	}
	return nil
}
