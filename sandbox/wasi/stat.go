package wasi

import (
	"context"
	"io/fs"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// A filetype is one of typenames.witx, $filetype.
type filetype byte

const (
	typeUnknown         filetype = 0
	typeBlockDevice     filetype = 1
	typeCharacterDevice filetype = 2
	typeDirectory       filetype = 3
	typeRegular         filetype = 4
	typeSocket          filetype = 6
	typeLink            filetype = 7
)

func filetypeOf(m fs.FileMode) filetype {
	switch m.Type() {
	case 0:
		return typeRegular
	case fs.ModeDir:
		return typeDirectory
	case fs.ModeSymlink:
		return typeLink
	case fs.ModeSocket:
		return typeSocket
	case fs.ModeDevice:
		return typeBlockDevice
	case fs.ModeDevice | fs.ModeCharDevice:
		return typeCharacterDevice
	}
	return typeUnknown // such as a FIFO, for which preview 1 has no word
}

// filestatSize is that of typenames.witx, $filestat.
const filestatSize = 64

// identity is what package fs does not tell of a file, as far as the platform
// does. Times are in nanoseconds since 1970.
type identity struct {
	device, inode, links uint64
	accessed, changed    int64
}

func putFilestat(b []byte, info fs.FileInfo) {
	id := identify(info)
	clear(b)
	le.PutUint64(b, id.device)
	le.PutUint64(b[8:], id.inode)
	b[16] = byte(filetypeOf(info.Mode()))
	le.PutUint64(b[24:], id.links)
	le.PutUint64(b[32:], uint64(info.Size()))
	le.PutUint64(b[40:], uint64(id.accessed))
	le.PutUint64(b[48:], uint64(info.ModTime().UnixNano()))
	le.PutUint64(b[56:], uint64(id.changed))
}

func fdFilestatGet(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f, e := p.with(a[0], rightFdStat)
	if e != success {
		return e
	}
	b, ok := at(mem, a[1], filestatSize)
	if !ok {
		return errFault
	}
	if f.in != nil || f.out != nil {
		clear(b)
		return success
	}
	p.charge(callCost)
	info, e := f.stat()
	if e != success {
		return e
	}
	putFilestat(b, info)
	return success
}

// stat is of a file or directory.
func (f *file) stat() (fs.FileInfo, errno) {
	if f.dir != nil {
		return f.dir.stat()
	}
	info, err := f.disk.host.Stat()
	return info, errnoOf(err)
}

func pathFilestatGet(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	b, ok := at(mem, a[4], filestatSize)
	if !ok {
		return errFault
	}
	t, e := p.find(mem, a[0], rightPathStat, a[1], a[2], a[3])
	if e != success {
		return e
	}
	putFilestat(b, t.info)
	return success
}

// Which times to set, and to what (typenames.witx, $fstflags).
const (
	setAccessed = 1 << iota
	setAccessedNow
	setModified
	setModifiedNow
)

// times reads (accessed, modified, flags). The zero time leaves one unchanged.
func times(a []uint64) (accessed, modified time.Time, e errno) {
	flags := uint32(a[2])
	if flags >= setModifiedNow<<1 {
		return accessed, modified, errInvalid
	}
	accessed, e = timeOf(a[0], flags&setAccessed != 0, flags&setAccessedNow != 0)
	if e != success {
		return accessed, modified, e
	}
	modified, e = timeOf(a[1], flags&setModified != 0, flags&setModifiedNow != 0)
	return accessed, modified, e
}

func timeOf(nanoseconds uint64, given, now bool) (time.Time, errno) {
	switch {
	case given && now, given && nanoseconds > math.MaxInt64:
		return time.Time{}, errInvalid
	case given:
		return time.Unix(0, int64(nanoseconds)), success
	case now:
		return time.Now(), success
	}
	return time.Time{}, success
}

func fdFilestatSetTimes(ctx context.Context, p *Process, _ api.Memory, a []uint64) errno {
	f := p.file(a[0])
	switch {
	case f == nil:
		return errBadFile
	case f.in != nil || f.out != nil:
		return errInvalid
	}
	if e := f.need(rightFdSetTimes); e != success {
		return e
	}
	accessed, modified, e := times(a[1:])
	if e != success {
		return e
	}
	var where place
	if f.disk != nil {
		where = f.disk.place
		_, e = where.same(f.disk.info)
	} else {
		where = f.dir.place
		_, e = f.dir.stat()
	}
	if e != success {
		return e
	}
	return p.setTimes(ctx, where, accessed, modified)
}

func pathFilestatSetTimes(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	accessed, modified, e := times(a[4:])
	if e != success {
		return e
	}
	t, e := p.find(mem, a[0], rightPathSetTimes, a[1], a[2], a[3])
	if e != success {
		return e
	}
	if t.info.Mode()&fs.ModeSymlink != 0 {
		return errUnsupported
	}
	return p.setTimes(ctx, t.place, accessed, modified)
}

func (p *Process) setTimes(ctx context.Context, at place, accessed, modified time.Time) errno {
	if e := p.ask(ctx, OpWrite, at); e != success {
		return e
	}
	p.charge(callCost)
	return errnoOf(at.grant.Root.Chtimes(at.name(), accessed, modified))
}
