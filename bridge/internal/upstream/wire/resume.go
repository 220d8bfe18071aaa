package wire

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

// maxResumes bounds how often the stream of one answer is taken up again without
// anything new in it.
const maxResumes = 5

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
