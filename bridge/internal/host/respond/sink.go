package respond

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A client that does not read its answers, or sends its requests byte by byte, does not hold up
// others, and takes a bounded part of memory for a bounded time. Streams over HTTP are written by a
// goroutine of their own. Messages of servers for a client in the middle of its calls are dropped
// if it does not keep up: see maxRemarks of package upstream.

const (
	// writeTime is how long a client may take to read maxChunk, or any answer that is
	// no stream. Then it has gone.
	writeTime = 30 * time.Second
	maxChunk  = 64 << 10
	// maxUnread is how many bytes of a stream wait for its client. Beyond that a writer waits, too.
	maxUnread = 1 << 20
	// maxBuffered is how much of an answer net/http takes without writing any of it, in bytes: a
	// shorter answer does not wait for its client.
	maxBuffered = 2048
	// silence is how long a stream says nothing before a comment shows that it lives: proxies
	// and clients give up silent ones (HTML Living Standard, 9.2.7, "Authoring notes").
	silence = 15 * time.Second
)

var errSlow = errors.New("the client does not read")

// A Sink is an HTTP response that is a stream of events. What is written waits in it until
// Run has written it to the client.
type Sink struct {
	w http.ResponseWriter
	c *http.ResponseController

	mu     sync.Mutex
	room   sync.Cond // signalled with each change
	unread []byte
	ended  bool
	failed error
	lives  *time.Timer   // after silence; nil before Run
	over   chan struct{} // closed when Run has ended
}

// NewSink returns a sink of a response.
func NewSink(w http.ResponseWriter) *Sink {
	k := &Sink{w: w, c: http.NewResponseController(w), over: make(chan struct{})}
	k.room.L = &k.mu
	return k
}

// Begin begins the response, with a comment unless it is "": a proxy may hold back a head that
// nothing follows.
func (k *Sink) Begin(comment string) {
	k.w.Header().Set("Content-Type", "text/event-stream")
	k.w.Header().Set("Cache-Control", "no-cache, no-transform")
	if comment != "" {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.unread = append([]byte(": "+comment+"\n\n"), k.unread...)
	}
}

// Write has b written, once there is room for it.
func (k *Sink) Write(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.unread) > maxUnread && k.failed == nil && !k.ended {
		k.room.Wait()
	}
	k.take(b)
}

// Queue has b written, whether there is room or not.
func (k *Sink) Queue(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.take(b)
}

// take keeps b until it is written. The caller holds mu.
func (k *Sink) take(b []byte) {
	if k.failed == nil && !k.ended {
		k.unread = append(k.unread, b...)
		k.room.Broadcast()
	}
}

// End lets Run end when all is written.
func (k *Sink) End() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.room.Broadcast()
}

// Run writes the unread bytes until the stream has ended, or its client does not read.
func (k *Sink) Run() error {
	defer close(k.over)
	defer func() { _ = k.c.SetWriteDeadline(time.Time{}) }() // the connection may carry other requests
	k.mu.Lock()
	k.lives = time.AfterFunc(silence, k.live)
	k.mu.Unlock()
	defer k.lives.Stop()
	_ = k.c.Flush() // the head
	for {
		chunk, ok := k.next()
		if !ok {
			return nil
		}
		if err := k.writeAll(chunk); err != nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.failed, k.unread = errors.Join(errSlow, err), nil
			k.room.Broadcast()
			return k.failed
		}
	}
}

// live has a comment written.
func (k *Sink) live() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended && k.failed == nil {
		k.take([]byte(":\n\n"))
		k.lives.Reset(silence)
	}
}

// next waits for bytes to write; it is false when there will be no more.
func (k *Sink) next() ([]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.unread) == 0 && !k.ended {
		k.room.Wait()
	}
	chunk := k.unread
	k.unread = nil
	k.room.Broadcast()
	return chunk, len(chunk) > 0
}

func (k *Sink) writeAll(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), maxChunk)
		_ = k.c.SetWriteDeadline(time.Now().Add(writeTime)) // a writer of a test may have none
		if _, err := k.w.Write(b[:n]); err != nil {
			return err
		}
		if err := k.c.Flush(); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Wait waits until Run has ended.
func (k *Sink) Wait() { <-k.over }

// HangsUp reports whether the response to a request can be hung up.
func HangsUp(w http.ResponseWriter, r *http.Request) bool {
	for r.ProtoMajor == 1 && r.ProtoMinor == 1 {
		switch one := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = one.Unwrap()
		default:
			return false
		}
	}
	return false
}

// HangUp ends the response of a handler that goes on, once all is written: it takes the
// connection, and ends by hand what net/http writes in chunks.
func (k *Sink) HangUp() {
	k.End()
	k.Wait()
	conn, buffered, err := k.c.Hijack()
	if err != nil {
		return // the client has gone
	}
	_ = conn.SetDeadline(time.Now().Add(writeTime))
	_, _ = buffered.WriteString("0\r\n\r\n")
	_ = buffered.Flush() // if the client has gone, the stream has ended, too
	_ = conn.Close()
}

var ofJSON = []string{"application/json"} // must not be changed

// Uncached is the value of Cache-Control that all answers have. It must not be changed.
var Uncached = []string{"no-cache, no-transform"}

// retryAfter is when a gateway that is about to end may have been replaced, in seconds.
const retryAfter = "2"

// JSON writes an answer that is no stream. It gives a client that does not read it
// writeTime.
func JSON(w http.ResponseWriter, status int, body []byte) {
	w.Header()["Content-Type"] = ofJSON
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	c := http.NewResponseController(w)
	if len(body) > maxBuffered {
		_ = c.SetWriteDeadline(time.Now().Add(writeTime)) // a writer of a test may have none
		defer func() { _ = c.SetWriteDeadline(time.Time{}) }()
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone if this fails
	if len(body) > maxBuffered {
		_ = c.Flush() // within the deadline
	}
}

// AppendEvent writes an event; an id of "" is none.
func AppendEvent(b []byte, name, id string, data []byte) []byte {
	b = append(append(append(b, "event: "...), name...), '\n')
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}
