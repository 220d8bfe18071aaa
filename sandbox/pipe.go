package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
)

// pipeSize is how many bytes a [Pipe] holds before its writer waits.
const pipeSize = 256 << 10

// A Pipe carries input to a served module: what is written to it the guest reads
// as its stdin. One goroutine writes; Close may come from another.
type Pipe struct {
	mu      sync.Mutex
	buf     []byte
	closed  bool          // the writer has ended
	gone    bool          // the reader has
	changed chan struct{} // closed at the next change
}

// NewPipe returns an empty pipe.
func NewPipe() *Pipe { return &Pipe{changed: make(chan struct{})} }

var errPipe = errors.New("sandbox: the reading module has ended")

// change wakes those that wait. The mutex is held.
func (p *Pipe) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Write implements [io.Writer]. It waits while the guest is behind.
func (p *Pipe) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		p.mu.Lock()
		if p.closed || p.gone {
			p.mu.Unlock()
			return written, errPipe
		}
		if room := pipeSize - len(p.buf); room > 0 {
			n := min(room, len(b))
			p.buf = append(p.buf, b[:n]...)
			b, written = b[n:], written+n
			p.change()
		}
		wait := p.changed
		p.mu.Unlock()
		if len(b) > 0 {
			<-wait // ends when the guest reads, or ends
		}
	}
	return written, nil
}

// Close implements [io.Closer]: the guest reads what is left, and then the end.
func (p *Pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.change()
	return nil
}

// end is called when nothing reads any more.
func (p *Pipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	p.change()
}

// ready reports whether there is something to read, or the end.
func (p *Pipe) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.buf) > 0 || p.closed
}

// wait waits until ready, or until ctx ends.
func (p *Pipe) wait(ctx context.Context) bool {
	for {
		p.mu.Lock()
		ready, changed := len(p.buf) > 0 || p.closed, p.changed
		p.mu.Unlock()
		if ready {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// read takes what there is of one line; it does not wait.
func (p *Pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.buf) == 0 && p.closed {
		return 0, io.EOF
	}
	n := len(p.buf)
	if end := bytes.IndexByte(p.buf, '\n'); end >= 0 {
		n = end + 1
	}
	n = copy(b, p.buf[:n])
	p.buf = p.buf[:copy(p.buf, p.buf[n:])]
	p.change()
	return n, nil
}
