package web

import (
	"net/http"
	"time"
)

// BodyTime bounds the body of an HTTP request.
const BodyTime = time.Minute

// BoundBody limits the time that a client has to send the body of a request. The limit also holds if
// the handler does not read the body, because net/http reads the rest before it answers. The answer may
// take longer: net/http takes the deadline away once the body has been read to its end.
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
