package wasi

import (
	"context"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// filestatSize is that of typenames.witx, $filestat.
const filestatSize = 64

func putFilestat(b []byte, i *info) {
	clear(b)
	le.PutUint64(b, i.device)
	le.PutUint64(b[8:], i.inode)
	b[16] = byte(i.kind)
	le.PutUint64(b[24:], i.links)
	le.PutUint64(b[32:], uint64(i.size))
	le.PutUint64(b[40:], uint64(i.accessed))
	le.PutUint64(b[48:], uint64(i.modified))
	le.PutUint64(b[56:], uint64(i.changed))
}

func fdFilestatGet(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	return p.fdFilestat(ctx, mem, a, filestatSize, putFilestat)
}

func (p *Process) fdFilestat(ctx context.Context, mem api.Memory, a []uint64, size uint32, put func([]byte, *info)) errno {
	f, e := p.table.with(a[0], rightFdStat)
	if e != success {
		return e
	}
	b, ok := at(mem, a[1], size)
	if !ok {
		return errFault
	}
	if f.in != nil || f.out != nil {
		clear(b)
		return success
	}
	p.charge(callCost)
	info, e := p.stat(ctx, f)
	if e != success {
		return e
	}
	put(b, info)
	return success
}

// stat is of a file or directory that is open.
func (p *Process) stat(ctx context.Context, f *file) (*info, errno) {
	if f.dir != nil {
		t, e := p.reach(ctx, f.dir.place, f.dir.info)
		return t.info, e
	}
	info, err := stat(f.disk.host)
	return info, errnoOf(err)
}

func pathFilestatGet(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	return p.pathFilestat(ctx, mem, a, filestatSize, putFilestat)
}

func (p *Process) pathFilestat(ctx context.Context, mem api.Memory, a []uint64, size uint32, put func([]byte, *info)) errno {
	b, ok := at(mem, a[4], size)
	if !ok {
		return errFault
	}
	t, e := p.find(ctx, mem, a[0], rightPathStat, a[1], a[2], a[3])
	if e != success {
		return e
	}
	put(b, t.info)
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
	f := p.table.file(a[0])
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
	var t target
	if f.disk != nil {
		t, e = p.reach(ctx, f.disk.place, f.disk.info)
	} else {
		t, e = p.reach(ctx, f.dir.place, f.dir.info)
	}
	if e != success {
		return e
	}
	return p.setTimes(ctx, t, accessed, modified)
}

func pathFilestatSetTimes(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	accessed, modified, e := times(a[4:])
	if e != success {
		return e
	}
	t, e := p.find(ctx, mem, a[0], rightPathSetTimes, a[1], a[2], a[3])
	if e != success {
		return e
	}
	if t.info.kind == typeLink {
		return errUnsupported
	}
	return p.setTimes(ctx, t, accessed, modified)
}

func (p *Process) setTimes(ctx context.Context, t target, accessed, modified time.Time) errno {
	if e := p.ask(ctx, OpWrite, t); e != success {
		return e
	}
	p.charge(callCost)
	a, m := t.info.accessed, t.info.modified
	if !accessed.IsZero() {
		a = accessed.UnixNano()
	}
	if !modified.IsZero() {
		m = modified.UnixNano()
	}
	return errnoOf(t.in().setTimes(t.base(), a, m))
}
