package fleet

import (
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate"
)

// Pins sees the declarations of servers, and reports which parts are approved.
type Pins interface {
	gate.Pins
	// Observe sees what a server declares, before any of it is offered. It may take
	// its time, and is called concurrently for different servers.
	Observe(d status.Declaration)
	// Pinned reports whether a person has approved the definition of a tool.
	Pinned(t *gate.Tool) bool
	// CheckInstructions returns nil if what a server says of how it is used is approved.
	CheckInstructions(server string, text gate.Doc) error
}
