package upstream

import (
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/escaped"
)

// soonKnown is how long the start of a child again counts as the fault before it.
const soonKnown = 2 * time.Second

// Count adds to a status what the server offers in addition to tools; nil is nothing. It is not a
// method, because package gateway promises to keep the methods of a status.
func Count(s *status.Server, f *listing.Features) {
	if f == nil {
		return
	}
	s.Prompts, s.Resources, s.Templates, s.Skills = len(f.Prompts), len(f.Resources), len(f.Templates), len(f.Skills)
	s.Notes = slices.Concat(s.Notes, f.Notes)
}

// Status tells how the endpoint is.
func (e *Endpoint) Status() status.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := status.Server{Server: e.cfg.Server, Phase: e.phase, Since: e.since, Tools: len(e.tools.All), Methods: len(e.methods), Notes: e.tools.Notes}
	Count(&s, e.tools.Features)
	s.Said = e.said
	switch {
	case e.phase == status.Connecting && e.fault != nil && (e.cfg.Command == "" || time.Since(e.since) < soonKnown):
		s.Phase = status.Faulted // and being tried again, which may last a moment
	case e.phase == status.Connecting && e.cfg.Command != "":
		s.Phase, s.Said = status.Starting, e.attempt.limit.said()
	case e.link != nil:
		if c, ok := e.link.Peer.Conn.(*wire.StdioConn); ok {
			s.Said = c.Said()
		}
	}
	if l := e.link; l != nil {
		s.Name, s.Version, s.Protocol = printable(l.Server.Get("name")), printable(l.Server.Get("version")), l.Revision
		for name := range l.Capabilities.Members() {
			s.Capabilities = append(s.Capabilities, mcp.Clip(escaped.Text(name), maxSaidName))
		}
		slices.Sort(s.Capabilities)
	}
	if s.Phase == status.Faulted || s.Phase == status.Closed && e.fault != nil {
		s.Fault, s.Error = e.fault.Kind, e.fault.Err.Error()
	}
	s.Circuit = e.circuit.State(time.Now())
	if r := e.cfg.Confine; r != nil {
		s.Unenforced = confine.Missing(*r)
		s.Confined = len(s.Unenforced) == 0
	}
	return s
}

// maxSaidName bounds what a server calls itself, in bytes.
const maxSaidName = 100

// printable is what a server says of itself, as an operator can read it.
func printable(d gate.Doc) string { return mcp.Clip(escaped.Text(d.Text()), maxSaidName) }
