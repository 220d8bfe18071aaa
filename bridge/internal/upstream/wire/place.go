package wire

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

const (
	// resumeAfter is the pause before a stream is taken up again if the server names none, and
	// maxRetry bounds what it can name.
	resumeAfter = time.Second
	maxRetry    = 30 * time.Second
	// maxEventID bounds the id of an event, in bytes: it is sent back.
	maxEventID = 1 << 10
)

// A place is where a stream of events is (HTML Living Standard, 9.2.6).
type place struct {
	id, next string        // of the last event, and of the one under way
	retry    time.Duration // that the server names; zero if it names none
	moved    bool          // since the stream was taken up
}

// field takes a line that is no data.
func (p *place) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		if len(value) <= maxEventID && bytes.IndexByte(value, 0) < 0 {
			p.next = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			p.retry = min(max(time.Duration(ms)*time.Millisecond, time.Millisecond), maxRetry)
		}
	}
}

// passed notes that an event has ended.
func (p *place) passed() {
	p.moved = p.moved || p.next != p.id
	p.id = p.next
}

// headers returns those of a request that takes the stream up from where it is.
func (p *place) headers() http.Header {
	if p.id == "" {
		return nil
	}
	return http.Header{mcp.HeaderLastEvent: {p.id}}
}

// pause returns how long to wait before the stream is taken up.
func (p *place) pause() time.Duration {
	if p.retry == 0 {
		return resumeAfter
	}
	return p.retry
}
