package transport

import (
	"context"
	"net/http"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/gate"
)

// The sender of a request is its principal, found out anew for each request. What a request makes
// and leaves behind is that principal's: sessions, streams, parked calls, tasks, questions and
// subscriptions. For any other principal none of it exists.

type principalKey struct{}

// WithPrincipal returns the context of requests that a principal sends.
func WithPrincipal(ctx context.Context, who *gate.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, who)
}

// caller returns the principal that sends a request.
func (f *Front) caller(r *http.Request) (*gate.Principal, error) {
	if who, ok := r.Context().Value(principalKey{}).(*gate.Principal); ok && who != nil {
		return who, nil
	}
	if f.access.Principal == nil {
		return f.access.Who, nil
	}
	who, err := f.access.Principal(r)
	if err == nil && who == nil {
		err = errNobody{}
	}
	return who, err
}

// revocations is how many credentials were revoked before the caller of a request is found out.
func (f *Front) revocations() uint32 {
	if f.access.Revocations == nil {
		return 0
	}
	return f.access.Revocations()
}

// errNobody is the error of a request without a principal.
type errNobody struct{}

func (errNobody) Error() string { return "authentication is required" }

// refuseCaller answers a request whose sender is refused, in the words of the error if it
// has any.
func refuseCaller(w http.ResponseWriter, r *http.Request, err error) {
	if own, ok := err.(http.Handler); ok {
		own.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, errNobody{}.Error(), http.StatusUnauthorized)
}

// codeNoSession is what the servers of the official SDKs say with the 404 of MCP 2025-11-25
// (basic/transports, "Session Management"), and what clients look for.
const codeNoSession = -32001

// noSession answers a request that names a session which does not exist, or is not the sender's:
// the sender must not learn which.
func noSession(w http.ResponseWriter) {
	message.Refuse(http.StatusNotFound, nil, codeNoSession, "Session not found").Write(w)
}
