package wasi

import (
	"context"
	"io"
	"os"

	"github.com/tetratelabs/wazero/api"
)

const (
	direntSize = 24 // of typenames.witx, $dirent, before the name

	// maxEntries is how many entries of directories a call may hold at once:
	// some megabytes.
	maxEntries = 1 << 16
	// listPiece is how many entries are read between two charges.
	listPiece = 256
)

// fdReaddir writes entries from the cookie on until the buffer is full; the
// last one is cut off then. A buffer that is not filled tells the guest that
// there are no more. Cookie 0 reads the directory anew.
func fdReaddir(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f := p.table.file(a[0])
	if f == nil || f.dir == nil {
		return errBadFile
	}
	if e := f.need(rightFdReaddir); e != success {
		return e
	}
	b, ok := at(mem, a[1], uint32(a[2]))
	if !ok {
		return errFault
	}
	used, ok := at(mem, a[4], 4)
	if !ok {
		return errFault
	}
	cookie := a[3]
	if cookie == 0 || !f.dir.listed {
		if e := p.list(ctx, f.dir); e != success {
			return e
		}
	}
	if cookie > uint64(len(f.dir.entries)) {
		return errInvalid
	}
	n := putEntries(b, f.dir.entries[cookie:], cookie)
	p.charge(n)
	le.PutUint32(used, uint32(n))
	return success
}

// list reads the directory. It asks each time: opening one asks nothing, as
// only here something is read.
func (p *Process) list(ctx context.Context, d *directory) errno {
	f, e := p.openDirectory(ctx, d, func(t target) errno { return p.ask(ctx, OpRead, t) })
	if e != success {
		return e
	}
	defer f.Close()
	p.table.entries -= len(d.entries)
	d.listed = true
	d.entries = []entry{{name: ".", kind: typeDirectory}, {name: "..", kind: typeDirectory}}
	if e := p.readEntries(f, d); e != success {
		d.entries, d.listed = nil, false
		return e
	}
	p.table.entries += len(d.entries)
	return success
}

// openDirectory opens a directory of the guest's, if it may.
func (p *Process) openDirectory(ctx context.Context, d *directory, may func(target) errno) (*os.File, errno) {
	t, e := p.reach(ctx, d.place, d.info)
	if e == success {
		e = may(t)
	}
	if e != success {
		return nil, staleNotAgain(e)
	}
	p.charge(callCost)
	f, _, e := t.open(os.O_RDONLY)
	return f, staleNotAgain(e)
}

// staleNotAgain is for what is open: a second try would not find it any more.
func staleNotAgain(e errno) errno {
	if e == errAgain {
		return errStale
	}
	return e
}

func (p *Process) readEntries(f *os.File, d *directory) errno {
	for {
		some, err := entriesOf(f, listPiece)
		p.charge(callCost * (1 + len(some))) // each is looked at
		d.entries = append(d.entries, some...)
		switch {
		case err == io.EOF:
			return success
		case err != nil:
			return errnoOf(err)
		case p.table.entries+len(d.entries) > maxEntries:
			return errNoMemory
		}
	}
}

// putEntries returns how many bytes of b it used.
func putEntries(b []byte, entries []entry, cookie uint64) int {
	used := 0
	var head [direntSize]byte
	for _, e := range entries {
		cookie++
		le.PutUint64(head[:], cookie)
		le.PutUint64(head[8:], e.inode)
		le.PutUint32(head[16:], uint32(len(e.name)))
		head[20] = byte(e.kind)
		used += copy(b[used:], head[:])
		used += copy(b[used:], e.name)
		if used == len(b) {
			break
		}
	}
	return used
}
