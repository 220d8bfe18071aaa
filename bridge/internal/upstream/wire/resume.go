package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

const (
	// maxResumes bounds how often the stream of one answer is taken up again without
	// anything new in it.
	maxResumes = 5
	// resumeAfter is the pause before that if the server names none, and maxRetry
	// bounds what it can name.
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

// answers delivers the messages of the stream that answers request id. A stream that
// ends before its answer is taken up where it ended, if the server says where that is:
// it may end streams, so that clients poll (MCP 2025-11-25, basic/transports,
// "Resumability and Redelivery").
func (c *HTTPConn) answers(ctx context.Context, body io.Reader, id string, stop func()) error {
	var at place
	answered, err := c.events(body, id, &at, stop)
	if err == nil && !answered && at.retry > 0 {
		c.Polls(RequestNumber(id), at.retry)
	}
	for again := 0; !answered && again < maxResumes && at.id != "" && !final(err); again++ {
		at.moved = false
		if answered, err = c.resume(ctx, id, &at); ctx.Err() != nil {
			return ctx.Err()
		}
		if at.moved {
			again = 0
		}
	}
	if err == nil && !answered && at.retry == 0 {
		err = errors.New("the stream ended before the answer")
	}
	return err // nil without an answer: the server has ended the stream on purpose, and has not given up the call
}

// resume takes up the stream that answers request id.
func (c *HTTPConn) resume(ctx context.Context, id string, at *place) (answered bool, err error) {
	select {
	case <-time.After(at.pause()):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.do(ctx, http.MethodGet, nil, at.headers())
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		return false, statusOf(resp)
	}
	return c.events(resp.Body, id, at, cancel)
}

// final reports whether a stream that ended with err is not worth being taken up.
func final(err error) bool {
	if _, ok := errors.AsType[*mcp.ProtocolError](err); ok {
		return true
	}
	s, ok := errors.AsType[*StatusError](err)
	return ok && s.Status/100 == 4
}
