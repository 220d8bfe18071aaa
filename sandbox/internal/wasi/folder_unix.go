//go:build linux || darwin

package wasi

import (
	"os"

	"golang.org/x/sys/unix"
)

// A folder is an open directory of the host. What is done in it is done by a
// single name, and never through a link: neither can another writer lead it
// elsewhere.
type folder struct{ fd int }

// openFolder opens the directory of a root.
func openFolder(root *os.Root) (folder, error) {
	f, err := root.Open(".")
	if err != nil {
		return folder{}, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return folder{fd}, err
}

// enter opens the directory of this name.
func (f folder) enter(name string) (folder, error) {
	fd, err := f.openat(name, unix.O_RDONLY|unix.O_DIRECTORY)
	return folder{fd}, err
}

func (f folder) openat(name string, mode int) (fd int, err error) {
	err = uninterrupted(func() error {
		// O_NONBLOCK: opening a FIFO must not wait for its other end.
		fd, err = unix.Openat(f.fd, name, mode|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, newFile)
		return err
	})
	return fd, err
}

// open opens the file or directory of this name with os.OpenFile's flags.
func (f folder) open(name string, mode int) (*os.File, *info, error) {
	fd, err := f.openat(name, mode)
	if err != nil {
		return nil, nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	i, err := stat(file)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, i, nil
}

func (f folder) lstat(name string) (*info, error) {
	var s unix.Stat_t
	err := uninterrupted(func() error { return unix.Fstatat(f.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return nil, err
	}
	return infoOf(&s), nil
}

func (f folder) readlink(name string) (string, error) {
	b := make([]byte, maxPath+1)
	n, err := unix.Readlinkat(f.fd, name, b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

func (f folder) mkdir(name string) error { return unix.Mkdirat(f.fd, name, newDirectory) }

func (f folder) symlink(to, name string) error { return unix.Symlinkat(to, f.fd, name) }

func (f folder) link(name string, to folder, newName string) error {
	return unix.Linkat(f.fd, name, to.fd, newName, 0)
}

// rename replaces what has the new name, as POSIX says: a file by a file, an
// empty directory by a directory.
func (f folder) rename(name string, to folder, newName string) error {
	return unix.Renameat(f.fd, name, to.fd, newName)
}

func (f folder) remove(name string, directory bool) error {
	flags := 0
	if directory {
		flags = unix.AT_REMOVEDIR
	}
	return unix.Unlinkat(f.fd, name, flags)
}

// setTimes sets times in nanoseconds since 1970.
func (f folder) setTimes(name string, accessed, modified int64) error {
	times := []unix.Timespec{unix.NsecToTimespec(accessed), unix.NsecToTimespec(modified)}
	return unix.UtimesNanoAt(f.fd, name, times, unix.AT_SYMLINK_NOFOLLOW)
}

func (f folder) close() error { return unix.Close(f.fd) }

func uninterrupted(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// stat describes an open file.
func stat(f *os.File) (*info, error) {
	var s unix.Stat_t
	if err := uninterrupted(func() error { return unix.Fstat(int(f.Fd()), &s) }); err != nil {
		return nil, err
	}
	return infoOf(&s), nil
}

// statPath describes the directory of this name.
func statPath(name string) (*info, error) {
	var s unix.Stat_t
	if err := uninterrupted(func() error { return unix.Stat(name, &s) }); err != nil {
		return nil, err
	}
	return infoOf(&s), nil
}

// identity tells a file from all others.
type identity struct{ device, inode uint64 }

func (i *info) same(other *info) bool { return i.device == other.device && i.inode == other.inode }

func infoOf(s *unix.Stat_t) *info {
	return &info{
		identity: identity{device: uint64(s.Dev), inode: s.Ino}, kind: kindOf(uint32(s.Mode)), size: s.Size, links: uint64(s.Nlink),
		accessed: s.Atim.Nano(), modified: s.Mtim.Nano(), changed: s.Ctim.Nano(),
	}
}

func kindOf(mode uint32) filetype {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return typeRegular
	case unix.S_IFDIR:
		return typeDirectory
	case unix.S_IFLNK:
		return typeLink
	case unix.S_IFSOCK:
		return typeSocket
	case unix.S_IFBLK:
		return typeBlockDevice
	case unix.S_IFCHR:
		return typeCharacterDevice
	}
	return typeUnknown // such as a FIFO, for which preview 1 has no word
}

// entriesOf reads up to n more entries of an open directory. Package os looks at
// entries by the directory's name, which may be another's by now.
func entriesOf(f *os.File, n int) ([]entry, error) {
	names, err := f.Readdirnames(n)
	in := folder{int(f.Fd())}
	entries := make([]entry, 0, len(names))
	for _, name := range names {
		e := entry{name: name}
		if info, err := in.lstat(name); err == nil { // else it is gone again
			e.kind, e.inode = info.kind, info.inode
		}
		entries = append(entries, e)
	}
	return entries, err
}
