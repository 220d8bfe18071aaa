package auth

import (
	"net/http"
	"net/netip"
	"sync"
)

const (
	// maxDenials bounds the kinds that are counted apart.
	maxDenials = 1024
	// elsewhere is the network of what is not counted apart.
	elsewhere = "others"
)

// Denials count refused requests by reason and network. The zero value counts none yet. Use it from several
// goroutines.
type Denials struct {
	mu sync.Mutex
	by map[Denial]uint64
}

// A Denial is one kind of them.
type Denial struct{ Reason, Network string }

// Add counts a request, and reports whether it is the first of its kind for a while.
func (d *Denials) Add(refusal *Refusal, r *http.Request) (first bool) {
	k := Denial{refusal.Kind(), network(r.RemoteAddr)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = make(map[Denial]uint64)
	}
	if _, known := d.by[k]; !known && len(d.by) >= maxDenials {
		k.Network = elsewhere
	}
	d.by[k]++
	return d.by[k] == 1
}

// Take returns what was counted, and begins anew.
func (d *Denials) Take() map[Denial]uint64 {
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
