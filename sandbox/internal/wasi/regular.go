package wasi

import (
	"io"
	"math"
)

// read fills the vectors from the given offset on, as far as the file goes.
func (r *regular) read(p *Process, v vectors, from int64) (int, errno) {
	total := 0
	for i := range v.len() {
		b, ok := v.buffer(i)
		if !ok {
			return total, errFault
		}
		for len(b) > 0 {
			n, err := r.host.ReadAt(b[:min(len(b), piece)], from)
			total += n
			from += int64(n)
			b = b[n:]
			p.charge(n + callCost)
			if err == io.EOF {
				return total, success
			}
			if err != nil {
				return total, unlessMoved(total, err)
			}
		}
	}
	return total, success
}

// write writes the vectors, size bytes together, at the given offset.
func (r *regular) write(p *Process, v vectors, size int, to int64) (int, errno) {
	switch {
	case size == 0:
		return 0, success
	case to > math.MaxInt64-int64(size):
		return 0, errTooLarge
	}
	defer r.grant.usage.change()()
	now, err := r.host.Stat()
	if err != nil {
		return 0, errnoOf(err)
	}
	if e := p.claim(r.grant, max(0, to+int64(size)-now.Size())); e != success {
		return 0, e
	}
	n, err := p.gather(v, func(b []byte) (int, error) {
		n, err := r.host.WriteAt(b, to)
		to += int64(n)
		return n, err
	})
	return n, unlessMoved(n, err)
}

// append writes the vectors at the end of the file and moves there.
func (r *regular) append(p *Process, v vectors, size int) (int, errno) {
	defer r.grant.usage.change()()
	if e := p.claim(r.grant, int64(size)); e != success {
		return 0, e
	}
	n, err := p.gather(v, r.appender.Write)
	if end, err := r.appender.Seek(0, io.SeekCurrent); err == nil {
		r.position = end
	}
	return n, unlessMoved(n, err)
}

// gather has write take all of the vectors, in pieces that are charged before.
func (p *Process) gather(v vectors, write func([]byte) (int, error)) (total int, err error) {
	for i := range v.len() {
		b, _ := v.buffer(i) // checked, and nothing was written to the guest since
		for len(b) > 0 {
			n := min(len(b), piece)
			p.charge(n + callCost)
			n, err = write(b[:n])
			total += n
			if err != nil {
				return total, err
			}
			b = b[n:]
		}
	}
	return total, nil
}

// unlessMoved is the errno for err, or success if some bytes were moved: then the guest gets their
// number, and meets the error when it comes for the rest.
func unlessMoved(n int, err error) errno {
	if n > 0 {
		return success
	}
	return errnoOf(err)
}

// resize sets the length of the file.
func (r *regular) resize(p *Process, size uint64) errno {
	if size > math.MaxInt64 {
		return errTooLarge
	}
	defer r.grant.usage.change()()
	now, err := r.host.Stat()
	if err != nil {
		return errnoOf(err)
	}
	growth := int64(size) - now.Size()
	if e := p.claim(r.grant, max(0, growth)); e != success {
		return e
	}
	if err := r.host.Truncate(int64(size)); err != nil {
		return errnoOf(err)
	}
	r.grant.usage.give(max(0, -growth))
	return success
}
