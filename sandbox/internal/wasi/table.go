package wasi

import (
	"errors"
	"io"
)

// A table holds the descriptors of a process, by number.
type table struct {
	started bool
	files   []*file // nil: closed
	opened  int     // by path_open
	entries int     // of directories, held for fd_readdir
	grants  []*grant
	folders []folder // open while a host call walks

	streams [3]file
	first   [8]*file // backs files while there are few
}

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

// file returns the file with this number, or nil.
func (p *Process) file(fd uint64) *file {
	if n := uint32(fd); uint64(n) < uint64(len(p.table.files)) {
		return p.table.files[n]
	}
	return nil
}

// with returns the file with this number if it has the right.
func (p *Process) with(fd uint64, want rights) (*file, errno) {
	f := p.file(fd)
	if f == nil {
		return nil, errBadFile
	}
	return f, f.need(want)
}

// regular returns an open regular file that has the right.
func (p *Process) regular(fd uint64, want rights) (*file, errno) {
	f := p.file(fd)
	switch {
	case f == nil:
		return nil, errBadFile
	case f.dir != nil:
		return nil, errIsDir
	case f.disk == nil:
		return nil, errSeek
	}
	return f, f.need(want)
}

// directory returns an open directory that has the right.
func (p *Process) directory(fd uint64, want rights) (*file, errno) {
	f := p.file(fd)
	switch {
	case f == nil:
		return nil, errBadFile
	case f.dir == nil:
		return nil, errNotDir
	}
	return f, f.need(want)
}

// room checks that one more file may be opened.
func (p *Process) room() errno {
	limit := p.MaxFiles
	if limit == 0 {
		limit = defaultMaxFiles
	}
	if p.table.opened >= limit {
		return errManyFiles
	}
	return success
}

// add gives f the lowest free number.
func (p *Process) add(f *file) uint32 {
	t := &p.table
	t.opened++
	for i := range t.files {
		if t.files[i] == nil {
			t.files[i] = f
			return uint32(i)
		}
	}
	t.files = append(t.files, f)
	return uint32(len(t.files) - 1)
}

// remove closes the file with this number.
func (p *Process) remove(fd uint32) error {
	f := p.table.files[fd]
	p.table.files[fd] = nil
	if f.disk != nil || f.dir != nil && !f.dir.preopen {
		p.table.opened--
	}
	if f.dir != nil {
		p.table.entries -= len(f.dir.entries)
	}
	return f.close()
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
