package web

import (
	"net/http"
	"time"
)

// BodyTime bounds the body of an HTTP request.
const BodyTime = time.Minute

// BoundBody gives a client so much time to send the body of a request: also where nobody reads
// it, for net/http reads what is left of one before it answers. The answer may take longer:
// net/http takes the deadline away once the body has been read to its end.
func BoundBody(w http.ResponseWriter, r *http.Request, within time.Duration) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within)) // a writer of a test may have none
	}
}

// Bounded has [BoundBody] done before a handler.
func Bounded(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		BoundBody(w, r, within)
		next.ServeHTTP(w, r)
	})
}
