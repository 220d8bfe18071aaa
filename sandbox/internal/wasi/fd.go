package wasi

import (
	"context"
	"io"
	"math"

	"github.com/tetratelabs/wazero/api"
)

func fdRead(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f := p.table.file(a[0])
	if f == nil {
		return errBadFile
	}
	if f.dir != nil {
		return errIsDir
	}
	if e := f.need(rightFdRead); e != success {
		return e
	}
	return transfer(mem, a[1], a[2], a[3], func(v vectors, _ int) (int, errno) {
		if f.disk == nil {
			return f.readStream(ctx, p, v)
		}
		n, e := f.disk.read(p, v, f.disk.position)
		f.disk.position += int64(n)
		return n, e
	})
}

func fdPread(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f, e := p.table.regular(a[0], rightFdRead|rightFdSeek)
	if e != success {
		return e
	}
	if a[3] > math.MaxInt64 {
		return errInvalid
	}
	return transfer(mem, a[1], a[2], a[4], func(v vectors, _ int) (int, errno) {
		return f.disk.read(p, v, int64(a[3]))
	})
}

func fdWrite(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f := p.table.file(a[0])
	if f == nil {
		return errBadFile
	}
	if e := f.need(rightFdWrite); e != success {
		return e
	}
	return transfer(mem, a[1], a[2], a[3], func(v vectors, size int) (int, errno) {
		switch {
		case f.disk == nil:
			return f.writeStream(p, v)
		case f.flags&flagAppend != 0:
			return f.disk.append(p, v, size)
		}
		n, e := f.disk.write(p, v, size, f.disk.position)
		f.disk.position += int64(n)
		return n, e
	})
}

func fdPwrite(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f, e := p.table.regular(a[0], rightFdWrite|rightFdSeek)
	if e != success {
		return e
	}
	if a[3] > math.MaxInt64 {
		return errInvalid
	}
	return transfer(mem, a[1], a[2], a[4], func(v vectors, size int) (int, errno) {
		return f.disk.write(p, v, size, int64(a[3]))
	})
}

// transfer checks the vectors and the place of the result before move moves
// anything, and answers how many bytes it moved.
func transfer(mem api.Memory, list, count, result uint64, move func(v vectors, size int) (int, errno)) errno {
	v, size, e := buffers(mem, list, count)
	if e != success {
		return e
	}
	answer, ok := at(mem, result, 4)
	if !ok {
		return errFault
	}
	n, e := move(v, size)
	if e != success {
		return e
	}
	le.PutUint32(answer, uint32(n))
	return success
}

// readStream reads into the first buffer that has room, and no other: a second
// read could block while the guest could work on what the first one brought.
func (f *file) readStream(ctx context.Context, p *Process, v vectors) (int, errno) {
	for i := range v.len() {
		b, _ := v.buffer(i)
		if len(b) == 0 {
			continue
		}
		if f.flags&flagNonblock != 0 && !ready(ctx, f.in) {
			return 0, errAgain
		}
		n, err := f.in.Read(b[:min(len(b), piece)])
		p.charge(n)
		if err == io.EOF {
			err = nil
		}
		return n, unlessMoved(n, err)
	}
	return 0, success
}

func (f *file) writeStream(p *Process, v vectors) (total int, e errno) {
	for i := range v.len() {
		b, _ := v.buffer(i)
		for len(b) > 0 {
			n := min(len(b), piece)
			p.charge(n)
			n, err := f.out.Write(b[:n])
			total += n
			if err != nil {
				return total, unlessMoved(total, err)
			}
			b = b[n:]
		}
	}
	return total, success
}

// Where fd_seek counts from (typenames.witx, $whence).
const (
	fromStart = iota
	fromPosition
	fromEnd
)

func fdSeek(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f, e := p.table.regular(a[0], rightFdSeek)
	if e != success {
		return e
	}
	var base int64
	switch uint32(a[2]) {
	case fromStart:
	case fromPosition:
		base = f.disk.position
	case fromEnd:
		info, err := f.disk.host.Stat()
		if err != nil {
			return errnoOf(err)
		}
		base = info.Size()
	default:
		return errInvalid
	}
	offset := int64(a[1])
	if offset > math.MaxInt64-base {
		return errOverflow
	}
	if base+offset < 0 {
		return errInvalid
	}
	if !mem.WriteUint64Le(uint32(a[3]), uint64(base+offset)) {
		return errFault
	}
	f.disk.position = base + offset
	return success
}

func fdTell(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f, e := p.table.regular(a[0], rightFdTell)
	if e != success {
		return e
	}
	if !mem.WriteUint64Le(uint32(a[1]), uint64(f.disk.position)) {
		return errFault
	}
	return success
}

func fdClose(_ context.Context, p *Process, _ api.Memory, a []uint64) errno {
	if p.table.file(a[0]) == nil {
		return errBadFile
	}
	return errnoOf(p.table.remove(uint32(a[0])))
}

// fdRenumber closes the descriptor a[1] and gives its number to a[0]. Both must
// be open, so that a guest cannot choose numbers at will.
func fdRenumber(_ context.Context, p *Process, _ api.Memory, a []uint64) errno {
	from, to := p.table.file(a[0]), p.table.file(a[1])
	switch {
	case from == nil || to == nil:
		return errBadFile
	case from.preopened() || to.preopened():
		return errUnsupported
	case from == to:
		return success
	}
	err := p.table.remove(uint32(a[1]))
	p.table.files[uint32(a[1])], p.table.files[uint32(a[0])] = from, nil
	return errnoOf(err)
}

// adviceKinds is how many kinds of advice there are (typenames.witx, $advice).
const adviceKinds = 6

func fdAdvise(_ context.Context, p *Process, _ api.Memory, a []uint64) errno {
	_, e := p.table.regular(a[0], rightFdAdvise)
	if e != success {
		return e
	}
	if a[1] > math.MaxInt64 || a[2] > math.MaxInt64 || uint32(a[3]) >= adviceKinds {
		return errInvalid
	}
	return success
}

// fdAllocate makes the file reach to the end of what is to be allocated.
func fdAllocate(_ context.Context, p *Process, _ api.Memory, a []uint64) errno {
	f, e := p.table.regular(a[0], rightFdAllocate)
	if e != success {
		return e
	}
	if a[2] == 0 {
		return errInvalid
	}
	if a[1] > math.MaxInt64 || a[2] > math.MaxInt64-a[1] {
		return errTooLarge
	}
	info, err := f.disk.host.Stat()
	if err != nil {
		return errnoOf(err)
	}
	if end := a[1] + a[2]; end > uint64(info.Size()) {
		return f.disk.resize(p, end)
	}
	return success
}

func fdDatasync(ctx context.Context, p *Process, _ api.Memory, a []uint64) errno {
	return p.sync(ctx, a[0], rightFdDatasync)
}

func fdSync(ctx context.Context, p *Process, _ api.Memory, a []uint64) errno {
	return p.sync(ctx, a[0], rightFdSync)
}

func (p *Process) sync(ctx context.Context, fd uint64, want rights) errno {
	f := p.table.file(fd)
	if f == nil {
		return errBadFile
	}
	if f.in != nil || f.out != nil {
		return errInvalid // as fsync(2) says of a pipe
	}
	if e := f.need(want); e != success {
		return e
	}
	p.charge(syncCost)
	if f.disk != nil {
		return errnoOf(f.disk.host.Sync())
	}
	dir, e := p.openDirectory(ctx, f.dir, func(target) errno { return success })
	if e != success {
		return e
	}
	defer dir.Close()
	return errnoOf(dir.Sync())
}

func fdFdstatGet(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f := p.table.file(a[0])
	if f == nil {
		return errBadFile
	}
	b, ok := at(mem, a[1], 24)
	if !ok {
		return errFault
	}
	clear(b)
	b[0] = byte(f.filetype())
	le.PutUint16(b[2:], uint16(f.flags))
	le.PutUint64(b[8:], uint64(f.rights))
	le.PutUint64(b[16:], uint64(f.inheriting))
	return success
}

func fdFdstatSetFlags(ctx context.Context, p *Process, _ api.Memory, a []uint64) errno {
	f, e := p.table.with(a[0], rightFdSetFlags)
	if e != success {
		return e
	}
	want := uint32(a[1])
	if want&^uint32(flagsAll) != 0 {
		return errInvalid
	}
	flags := fdflags(want)
	if (flags^f.flags)&flagsSync != 0 {
		return errUnsupported
	}
	if flags&flagAppend != 0 && f.disk != nil && f.rights&rightFdWrite != 0 {
		if e := p.openAppender(ctx, f.disk, f.flags); e != success {
			return e
		}
	}
	f.flags = flags
	return success
}

// fdFdstatSetRights can only take rights away.
func fdFdstatSetRights(_ context.Context, p *Process, _ api.Memory, a []uint64) errno {
	f := p.table.file(a[0])
	if f == nil {
		return errBadFile
	}
	base, inheriting := rights(a[1]), rights(a[2])
	if base&^f.rights != 0 || inheriting&^f.inheriting != 0 {
		return errCapability
	}
	f.rights, f.inheriting = base, inheriting
	return success
}

func fdFilestatSetSize(_ context.Context, p *Process, _ api.Memory, a []uint64) errno {
	f, e := p.table.regular(a[0], rightFdSetSize)
	if e != success {
		return e
	}
	p.charge(callCost)
	return f.disk.resize(p, a[1])
}

// fdPrestatGet describes a preopened directory. libc asks for 3, 4, 5, ... until it gets EBADF.
func fdPrestatGet(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f := p.table.file(a[0])
	if f == nil || !f.preopened() {
		return errBadFile
	}
	b, ok := at(mem, a[1], 8)
	if !ok {
		return errFault
	}
	clear(b) // tag 0: a directory
	le.PutUint32(b[4:], uint32(len(f.dir.grant.Path)))
	return success
}

func fdPrestatDirName(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	f := p.table.file(a[0])
	if f == nil || !f.preopened() {
		return errBadFile
	}
	if uint64(uint32(a[2])) < uint64(len(f.dir.grant.Path)) {
		return errNameLong
	}
	b, ok := at(mem, a[1], uint32(len(f.dir.grant.Path)))
	if !ok {
		return errFault
	}
	copy(b, f.dir.grant.Path)
	return success
}
