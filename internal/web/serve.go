package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// HeaderTime bounds the headers of an HTTP request, IdleTime a connection between two.
const (
	HeaderTime = 10 * time.Second
	IdleTime   = 2 * time.Minute
)

// Serve serves until ctx ends, or until the server is shut down: its connections, which
// may be busy yet, end with ctx.
func Serve(ctx context.Context, s *http.Server, ln net.Listener) error {
	defer context.AfterFunc(ctx, func() { s.Close() })()
	err := s.Serve(ln)
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-ctx.Done() // shut down, and its connections may be busy yet
	return nil
}
