package host

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/host/respond"
	"github.com/wasmgate/wasmgate/bridge/internal/host/shares"
	"github.com/wasmgate/wasmgate/gate"
)

// clients are the clients that have sessions, and what is kept of their streams: a layer
// below [Host], which knows nothing of what their requests are about.
type clients struct {
	sessions sessions
	detached detached
	kept     *respond.Kept                   // of the streams of all sessions
	streams  *shares.Places[gate.SessionKey] // of notifications, over HTTP and in lines
	// drained ends when the host has drained, and with it what only waits for
	// notifications.
	drained context.Context

	ended        func(*session, *listener) // is told when a session has ended
	rootsChanged func(client)              // is told when a client's roots are others
}
