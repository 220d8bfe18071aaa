package wire

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

// maxAnnounced bounds the memory that is taken for a body because it is announced, in
// bytes: a server can announce what it does not send.
const maxAnnounced = 4 << 20

// readBody reads at most max bytes of a body, into a buffer of its own length.
func readBody(resp *http.Response, max int64) ([]byte, error) {
	if n := resp.ContentLength; n >= 0 && n <= min(max, maxAnnounced) {
		b := make([]byte, n)
		_, err := io.ReadFull(resp.Body, b)
		return b, err
	}
	buf := bodies.Get().(*bytes.Buffer)
	_, err := buf.ReadFrom(io.LimitReader(resp.Body, max))
	if buf.Cap() > maxAnnounced {
		return buf.Bytes(), err // too large to be kept
	}
	b := bytes.Clone(buf.Bytes())
	buf.Reset()
	bodies.Put(buf)
	return b, err
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}
