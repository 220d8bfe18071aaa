package wasi

import (
	"io/fs"
	"syscall"
)

func identify(info fs.FileInfo) identity {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{links: 1}
	}
	return identity{
		device: uint64(s.Dev), inode: s.Ino, links: uint64(s.Nlink),
		accessed: s.Atimespec.Nano(), changed: s.Ctimespec.Nano(),
	}
}
