package wasi

import (
	"errors"
	"io"
	"os"
)

// A file is what a descriptor stands for: exactly one of in, out, dir and disk.
type file struct {
	rights     rights
	inheriting rights // at most these has what is opened below it
	flags      fdflags

	in   io.Reader // stdin
	out  io.Writer // stdout, stderr
	dir  *directory
	disk *regular
}

// fdflags are those of typenames.witx, $fdflags.
type fdflags uint16

const (
	flagAppend fdflags = 1 << iota
	flagDsync
	flagNonblock
	flagRsync
	flagSync

	flagsSync = flagDsync | flagRsync | flagSync
	flagsAll  = flagAppend | flagNonblock | flagsSync
)

// A directory is a name and an identity; nothing of the host is open for it.
type directory struct {
	place
	info    *info // of when it was opened; nil for the root of a grant
	preopen bool
	listed  bool
	entries []entry // as fd_readdir saw them when it last began: a cookie is an index
}

// A regular is an open regular file. Its position is kept here, not by the
// host, so that a write beyond the end is seen.
type regular struct {
	place
	info     *info // of when it was opened: its identity
	key      any   // among the files that are held
	host     *os.File
	appender *os.File // the same file, opened for appending, which only the host does atomically; nil until it is needed
	position int64
}

// need checks that the descriptor has all the rights in want.
func (f *file) need(want rights) errno { return f.missing(want &^ f.rights) }

// missing says what it means to lack these rights.
func (f *file) missing(lack rights) errno {
	grant := f.grant()
	switch {
	case lack == 0:
		return success
	case lack&(rightFdRead|rightFdWrite) != 0 && f.dir == nil:
		return errBadFile // as read(2) and write(2) say of a file that is not open for it
	case lack&changing != 0 && grant != nil && !grant.Write:
		return errReadOnly
	}
	return errCapability
}

// grant is the directory that f was found in, nil for streams.
func (f *file) grant() *Dir {
	switch {
	case f.dir != nil:
		return f.dir.place.grant.Dir
	case f.disk != nil:
		return f.disk.place.grant.Dir
	}
	return nil
}

func (f *file) preopened() bool { return f.dir != nil && f.dir.preopen }

func (f *file) filetype() filetype {
	switch {
	case f.dir != nil:
		return typeDirectory
	case f.disk != nil:
		return typeRegular
	}
	return typeUnknown
}

// same reports whether two files of two processes are the same to a guest, as far as a new
// process has such.
func (f *file) same(other *file) bool {
	switch {
	case f == nil || other == nil:
		return f == other
	case f.rights != other.rights || f.inheriting != other.inheriting || f.flags != other.flags:
		return false
	case f.dir != nil && other.dir != nil:
		d, o := f.dir, other.dir
		return d.preopen && o.preopen && !d.listed && d.grant.Dir == o.grant.Dir && d.rel == o.rel
	}
	return f.disk == nil && f.dir == nil && other.dir == nil && f.in == other.in && f.out == other.out
}

// close gives back what the host holds open for f.
func (f *file) close() error {
	if f.disk == nil {
		return nil
	}
	size := int64(-1)
	if last, err := stat(f.disk.host); err == nil {
		size = last.size
	}
	err := f.disk.host.Close()
	if f.disk.appender != nil {
		err = errors.Join(err, f.disk.appender.Close())
	}
	held.drop(f.disk.key, size)
	return err
}
