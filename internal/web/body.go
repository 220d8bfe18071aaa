package web

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// BodyTime bounds the body of an HTTP request.
const BodyTime = time.Minute

// BoundBody gives a client so much time to send the body of a request: also where nobody reads
// it, for net/http reads what is left of one before it answers. The answer may take longer.
func BoundBody(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			c := http.NewResponseController(w)
			_ = c.SetReadDeadline(time.Now().Add(within)) // a writer of a test may have none
			r = r.WithContext(r.Context())                // net/http looks at the body that it gave
			r.Body = &bounded{r.Body, c}
		}
		next.ServeHTTP(w, r)
	})
}

// A bounded body has no deadline any more once it has been read.
type bounded struct {
	io.ReadCloser
	c *http.ResponseController
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) { // else the deadline stands: the rest may never come
		_ = b.c.SetReadDeadline(time.Time{})
	}
	return n, err
}
