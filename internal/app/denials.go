package app

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/auth"
)

const (
	// foldEvery is how often refused authentication is put into the audit log: strangers
	// cause no write each.
	foldEvery = time.Minute
	// maxDenials bounds the kinds that are counted apart.
	maxDenials = 1024
	// elsewhere is the network of what is not counted apart.
	elsewhere = "others"
)

// denials count refused requests by reason and network.
type denials struct {
	mu sync.Mutex
	by map[denial]uint64
}

type denial struct{ reason, network string }

// add counts a request, and reports whether it is the first of its kind for a while.
func (d *denials) add(refusal *auth.Refusal, r *http.Request) (first bool) {
	k := denial{refusal.Kind(), network(r.RemoteAddr)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = make(map[denial]uint64)
	}
	if _, known := d.by[k]; !known && len(d.by) >= maxDenials {
		k.network = elsewhere
	}
	d.by[k]++
	return d.by[k] == 1
}

func (d *denials) take() map[denial]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.by
	d.by = nil
	return all
}

// network is the /24 of an IPv4 address, or the /48 of an IPv6 one.
func network(remote string) string {
	addr, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "unix"
	}
	from, bits := addr.Addr().Unmap().WithZone(""), 24
	if from.Is6() {
		bits = 48
	}
	p, err := from.Prefix(bits)
	if err != nil {
		return elsewhere
	}
	return p.String()
}

// foldDenials records refused authentication until ctx ends.
func (a *App) foldDenials(ctx context.Context) {
	tick := time.NewTicker(foldEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.recordDenials()
		case <-ctx.Done():
			a.recordDenials()
			return
		}
	}
}

func (a *App) recordDenials() {
	for k, n := range a.senders.denied.take() {
		if err := a.gateway.Note(audit.Entry{Event: audit.Denied, Reasons: []string{k.reason}, Network: k.network, Count: n}); err != nil {
			a.log.Error("refused authentication is not in the audit log", "error", err)
			return
		}
	}
}
