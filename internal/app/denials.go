package app

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

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

// denials count refused requests by reason and network.
type denials struct {
	mu sync.Mutex
	by map[denial]uint64
}

type denial struct{ reason, network string }
