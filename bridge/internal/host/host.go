package host

import (
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/options"
)

// A Host is the gateway as an MCP server to clients, over stdio and HTTP, in
// the stateless protocol of revision 2026-07-28 and in the older ones with
// sessions. Use it from several goroutines.
type Host struct {
	*dispatch.Dispatcher
	*transport.Front
}

// Config configures a [Host].
type Config struct {
	dispatch.Config
	transport.Access
	Terms
}

// Terms are those of [dispatch.Terms] and [transport.Terms]: they may change while a host runs.
type Terms struct {
	Name, Version, Description string
	MaxBody                    int64
	Origins, Hosts             []string
	Drain                      time.Duration
	Asks, NoTasks              bool
}

// New returns a host. It starts nothing.
func New(cfg Config) (*Host, error) {
	d, err := dispatch.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	h := &Host{d, transport.New(d, cfg.Access)}
	h.Change(cfg.Terms)
	return h, nil
}

// Share is [transport.Front.Share].
func (h *Host) Share(p options.Peers, homes func() bool) {
	h.Front.Share(p, homes)
	h.Dispatcher.Share(p.Node())
}

// Change replaces the terms for requests to come.
func (h *Host) Change(t Terms) {
	h.Front.Change(transport.Terms{MaxBody: t.MaxBody, Origins: t.Origins, Hosts: t.Hosts, Drain: t.Drain})
	h.Dispatcher.Change(dispatch.Terms{Name: t.Name, Version: t.Version, Description: t.Description, Asks: t.Asks, NoTasks: t.NoTasks})
}
