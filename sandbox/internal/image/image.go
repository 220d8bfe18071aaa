package image

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// A Method is how memories are reset.
type Method string

const (
	Scan Method = "scan" // the kernel tells which pages were written
	Copy Method = "copy" // everything is copied
)

// PageSize is the size of a page of WebAssembly memory in bytes. Images and
// memories are whole pages.
const PageSize = 64 << 10

// An Image is the content of a memory at rest. It is immutable and may be used
// from several goroutines. Close it after all of its memories.
type Image struct {
	content []byte // of size bytes
	mapped  mapped // how memories get at it, if they map it
	method  Method
}

// New returns an image that begins with content, and is zero behind it, of size
// bytes in all. It uses the best method that works here; see [Detect].
func New(content []byte, size int64) (*Image, error) { return NewWith(Detect(), content, size) }

// NewWith is [New] with a method of one's own choice.
func NewWith(m Method, content []byte, size int64) (*Image, error) {
	if size%PageSize != 0 || int64(len(content)) > size {
		return nil, fmt.Errorf("image: %d bytes of content and %d in all are not memory of whole pages", len(content), size)
	}
	i := &Image{method: m}
	if m == Scan && size > 0 {
		return i, i.seal(content, size)
	}
	i.method = Copy
	i.content = make([]byte, size)
	copy(i.content, content)
	return i, nil
}

// Method is how memories of the image are reset.
func (i *Image) Method() Method { return i.method }

// Content is what the image holds. It must not be changed.
func (i *Image) Content() []byte { return i.content }

// Size is the size of the image in bytes.
func (i *Image) Size() int64 { return int64(len(i.content)) }

// Memory is the memory of one instance. One goroutine uses it at a time. It
// implements LinearMemory of the engine.
type Memory struct {
	image *Image
	buf   []byte // all that is reserved, if mapped; what is in use, if not
	limit uint64
	used  uint64 // bytes in use
	peak  uint64 // since the last reset
	// Grow is asked before the memory grows from used to size bytes, from 0 when
	// it begins, also beyond the limit; false refuses. Nil allows what the limit
	// does.
	Grow func(used, size uint64) bool
	dirt dirt
}

// NewMemory returns a memory of the image which can grow to limit bytes. Close
// it when the instance that has it is gone.
func (i *Image) NewMemory(limit int64) (*Memory, error) {
	if limit < i.Size() {
		return nil, fmt.Errorf("the module's memory starts with %d bytes, more than its limit of %d", i.Size(), limit)
	}
	m := &Memory{image: i, limit: uint64(limit)}
	if i.method == Scan {
		return m, m.reserve()
	}
	m.buf = bytes.Clone(i.content)
	return m, nil
}

// Method is how the memory is reset.
func (m *Memory) Method() Method { return m.image.method }

// Reallocate returns the memory at its new size, nil if it may not have it. A
// memory never shrinks but by Reset.
func (m *Memory) Reallocate(size uint64) []byte {
	if size > m.used && m.Grow != nil && !m.Grow(m.used, size) || size > m.limit {
		return nil
	}
	if m.image.method == Copy && size > uint64(len(m.buf)) {
		// At least a quarter more, so that growing page by page does not copy
		// everything each time.
		grown := make([]byte, max(size, min(uint64(len(m.buf))*5/4/PageSize*PageSize, m.limit)))
		copy(grown, m.buf)
		m.buf = grown
	}
	m.used, m.peak = size, max(m.peak, size)
	return m.buf[:size:size]
}

// Free does nothing: the owner of the memory closes it, once nothing reads from it any more.
func (m *Memory) Free() {}

// Peak is the most bytes that were in use since the last reset.
func (m *Memory) Peak() int64 { return int64(m.peak) }

// Reset makes the memory equal to its image and zero beyond it. The size in use
// stays as it is: see [Memory.Shrunk]. After an error the memory must not be
// used again.
func (m *Memory) Reset() error {
	m.peak = min(m.used, uint64(m.image.Size()))
	if m.image.method == Scan {
		return m.restore()
	}
	copy(m.buf, m.image.content)
	clear(m.buf[len(m.image.content):])
	return nil
}

// Shrunk returns the memory at the size of its image less one page: an engine needs that size so
// that growing by one page makes the memory anew.
func (m *Memory) Shrunk() []byte {
	size := uint64(m.image.Size()) - PageSize
	m.used, m.peak = size, size
	return m.buf[:size:size]
}

// Rebase makes the memory one of an image of what it holds, by the same method: it stays as
// it is, and where it is, and from then on it is reset to that image. After an error it must
// not be used again.
func (m *Memory) Rebase(i *Image) error {
	if i.method != m.image.method || uint64(i.Size()) != m.used {
		return errors.New("image: it is not one of the memory")
	}
	m.image = i
	if i.method == Scan {
		return m.lay()
	}
	return nil
}

// Close gives the memory back.
func (m *Memory) Close() error {
	if m.image.method == Scan {
		return m.unmap()
	}
	m.buf = nil
	return nil
}

// Detect finds out which method works here: a memory is written to, grown and
// reset, and looked at. The answer is kept.
var Detect = sync.OnceValue(func() Method {
	if try(Scan) == nil {
		return Scan
	}
	return Copy
})

// try tests a method on a memory of its own.
func try(method Method) error {
	content := bytes.Repeat([]byte{7}, 2*PageSize)
	i, err := NewWith(method, content, 3*PageSize)
	if err != nil {
		return err
	}
	m, err := i.NewMemory(8 * PageSize)
	if err != nil {
		return errors.Join(err, i.Close())
	}
	return errors.Join(m.try(content), m.Close(), i.Close())
}

func (m *Memory) try(content []byte) error {
	for range 3 {
		mem := m.Reallocate(5 * PageSize)
		if !bytes.Equal(mem[:len(content)], content) || len(bytes.TrimLeft(mem[len(content):], "\x00")) > 0 {
			return errors.New("image: a memory is not as its image")
		}
		for at := 0; at < len(mem); at += 5000 {
			mem[at]++
		}
		mem[len(mem)-1] = 1
		if err := m.Reset(); err != nil {
			return err
		}
	}
	return nil
}
