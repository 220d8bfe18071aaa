//go:build unix

package files

import (
	"io/fs"
	"os"
	"syscall"
)

// giveOwner gives a file to the user and the group that another has.
func giveOwner(f *os.File, as fs.FileInfo) error {
	want := as.Sys().(*syscall.Stat_t)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if has := info.Sys().(*syscall.Stat_t); has.Uid == want.Uid && has.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
