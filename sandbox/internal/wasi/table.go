package wasi

import "strings"

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

// file returns the file with this number, or nil.
func (t *table) file(fd uint64) *file {
	if n := uint32(fd); uint64(n) < uint64(len(t.files)) {
		return t.files[n]
	}
	return nil
}

// with returns the file with this number if it has the right.
func (t *table) with(fd uint64, want rights) (*file, errno) {
	f := t.file(fd)
	if f == nil {
		return nil, errBadFile
	}
	return f, f.need(want)
}

// regular returns an open regular file that has the right.
func (t *table) regular(fd uint64, want rights) (*file, errno) {
	f := t.file(fd)
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
func (t *table) directory(fd uint64, want rights) (*file, errno) {
	f := t.file(fd)
	switch {
	case f == nil:
		return nil, errBadFile
	case f.dir == nil:
		return nil, errNotDir
	}
	return f, f.need(want)
}

// add gives f the lowest free number.
func (t *table) add(f *file) uint32 {
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
func (t *table) remove(fd uint32) error {
	f := t.files[fd]
	t.files[fd] = nil
	if f.disk != nil || f.dir != nil && !f.dir.preopen {
		t.opened--
	}
	if f.dir != nil {
		t.entries -= len(f.dir.entries)
	}
	return f.close()
}

// follow lets what is open at a place, or below it, know its new name.
func (t *table) follow(from place, to string) {
	for _, f := range t.files {
		var at *place
		switch {
		case f == nil:
		case f.dir != nil:
			at = &f.dir.place
		case f.disk != nil:
			at = &f.disk.place
		}
		if at == nil || at.grant != from.grant {
			continue
		}
		if rest, ok := strings.CutPrefix(at.rel, from.rel); ok && (rest == "" || rest[0] == '/') {
			at.rel = to + rest
		}
	}
}

// leave closes what is open for walks, but for the first n.
func (t *table) leave(n int) {
	for _, f := range t.folders[n:] {
		f.close() // it was open for its name alone
	}
	t.folders = t.folders[:n]
}
