package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A client that does not read what it is sent, or sends what it has to say byte by
// byte, holds up nobody else, and a bounded part of memory for a bounded time. Streams
// over HTTP are written by a goroutine of their own; what servers tell a client in the
// middle of its calls is dropped where it does not keep up, see [upstream.maxRemarks].

const (
	// writeTime is how long a client may take to read maxChunk, or any answer that is
	// no stream. Then it has gone.
	writeTime = 30 * time.Second
	maxChunk  = 64 << 10
	// maxUnread is how many bytes of a stream wait for its client before who writes
	// more waits, too.
	maxUnread = 1 << 20
	// maxUnanswered is how many requests of a client on stdio are answered at one time
	// before one that does not read its answers is not read from either.
	maxUnanswered = 256
)

var (
	errSlow     = errors.New("the client does not read")
	errNoStream = errors.New("the answer is no stream, or has ended")
)

// slowWriter writes an answer within writeTime, and a stream of events from a buffer.
type slowWriter struct {
	http.ResponseWriter
	deadline func(time.Time) error // of writes
	flush    func() error
	gone     context.CancelFunc // ends the request of a client that does not read
	begins   func(http.Header)  // is told the headers before they leave; nil if nobody is

	mu      sync.Mutex
	room    *sync.Cond // signalled with each change
	unread  []byte
	writing bool // the goroutine that writes has begun
	failed  error
	ended   bool
	done    chan struct{} // closed when it has ended
}

// newSlowWriter returns a writer to w. End must be called when all is written.
func newSlowWriter(w http.ResponseWriter, gone context.CancelFunc) *slowWriter {
	c := http.NewResponseController(w)
	s := &slowWriter{ResponseWriter: w, deadline: c.SetWriteDeadline, flush: c.Flush, gone: gone, done: make(chan struct{})}
	s.room = sync.NewCond(&s.mu)
	return s
}

// DefaultBodyTime is how long a client may take to send a message over HTTP.
const DefaultBodyTime = time.Minute

// BoundBody gives a client so much time to send the body of a request: also where nobody
// reads it, for net/http reads what is left of one before it answers.
func BoundBody(w http.ResponseWriter, r *http.Request, within time.Duration) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within)) // a writer of a test may have none
	}
}

// read reads the body of a request, of at most so many bytes, within the time that it has.
// The error is an [*http.MaxBytesError], or the client has gone.
func (s *slowWriter) read(r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(s.ResponseWriter, r.Body, most))
	if err == nil { // else the deadline stands: the rest may never come
		_ = http.NewResponseController(s.ResponseWriter).SetReadDeadline(time.Time{})
	}
	return body, err
}

// Write implements [http.ResponseWriter]. Of a stream it waits only while more than
// maxUnread bytes are unread.
func (s *slowWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	// The headers of a stream are those of the goroutine that writes it.
	if !s.writing && !strings.HasPrefix(s.Header().Get("Content-Type"), "text/event-stream") {
		_ = s.deadline(time.Now().Add(writeTime)) // a writer of a test may have none
		return s.ResponseWriter.Write(b)
	}
	if !s.writing {
		s.writing = true
		go s.write() // ends with End, or when the client has gone
	}
	for len(s.unread) > maxUnread && s.failed == nil {
		s.room.Wait()
	}
	if s.failed != nil {
		return 0, s.failed
	}
	s.unread = append(s.unread, b...)
	s.room.Broadcast()
	return len(b), nil
}

// begin says that the headers leave.
func (s *slowWriter) begin() {
	if s.begins != nil {
		s.begins(s.Header())
		s.begins = nil
	}
}

// WriteHeader implements [http.ResponseWriter].
func (s *slowWriter) WriteHeader(status int) {
	s.mu.Lock()
	s.begin()
	s.mu.Unlock()
	s.ResponseWriter.WriteHeader(status)
}

// event writes a message to a stream that has begun, between those of the SDK, which
// writes an event at a time.
func (s *slowWriter) event(msg []byte) error {
	s.mu.Lock()
	began := s.writing && !s.ended
	s.mu.Unlock()
	if !began {
		return errNoStream
	}
	_, err := s.Write(fmt.Appendf(nil, "event: message\ndata: %s\n\n", msg))
	return err
}

// beginStream begins an answer that is a stream. The SDK, which does so too, sends the
// head of a stream that is taken up only with its next event, and until then the client
// does not know that it is there.
func (s *slowWriter) beginStream() {
	s.Header().Set("Content-Type", "text/event-stream")
	s.Header().Set("Cache-Control", "no-cache, no-transform")
	_ = s.deadline(time.Now().Add(writeTime))                // a writer of a test may have none
	_, _ = io.WriteString(s.ResponseWriter, ": resumed\n\n") // who has gone is noticed with the next event
	_ = s.flush()
}

// FlushError is what the SDK calls after each event. A stream is flushed as it is
// written.
func (s *slowWriter) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing {
		return s.failed
	}
	return s.flush()
}

// write writes what is unread, until the stream has ended.
func (s *slowWriter) write() {
	defer close(s.done)
	for {
		s.mu.Lock()
		for len(s.unread) == 0 && !s.ended {
			s.room.Wait()
		}
		chunk := s.unread
		s.unread = nil
		s.mu.Unlock()
		if len(chunk) == 0 {
			return
		}
		if err := s.writeAll(chunk); err != nil {
			s.gone()
			s.mu.Lock()
			s.failed, s.unread = errors.Join(errSlow, err), nil
			s.room.Broadcast()
			s.mu.Unlock()
			return
		}
		s.mu.Lock()
		s.room.Broadcast()
		s.mu.Unlock()
	}
}

func (s *slowWriter) writeAll(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), maxChunk)
		_ = s.deadline(time.Now().Add(writeTime))
		if _, err := s.ResponseWriter.Write(b[:n]); err != nil {
			return err
		}
		if err := s.flush(); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// End waits until all is written, or the client has gone.
func (s *slowWriter) End() {
	s.mu.Lock()
	s.ended = true
	s.room.Broadcast()
	writing := s.writing
	s.mu.Unlock()
	if writing {
		<-s.done
	}
	_ = s.deadline(time.Time{}) // the connection may carry other requests
}
