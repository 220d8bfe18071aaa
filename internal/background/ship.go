package background

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/internal/background/ship"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/telemetry"
)

// Shipping tells how far the audit log was sent to a target.
type Shipping struct {
	Target string `json:"target"`
	Lag    uint64 `json:"lag"`            // records that wait
	Gone   uint64 `json:"gone,omitempty"` // records that were removed before they were sent
}

// shipAll sends the audit log to all targets until ctx ends.
func (b *Work) shipAll(ctx context.Context, all *sync.WaitGroup, cfg *config.Config) {
	shippers := make(map[string]*ship.Shipper)
	for _, t := range cfg.Telemetry.Ship {
		shippers[t.Name] = b.shipper(cfg, t)
	}
	b.mu.Lock()
	b.shippers = shippers
	b.mu.Unlock()
	if len(shippers) == 0 {
		return
	}
	if err := os.MkdirAll(filepath.Join(cfg.State, "ship"), 0o700); err != nil {
		b.problem("ship", err)
		return
	}
	for _, s := range shippers {
		all.Go(func() { s.Run(ctx) })
	}
}

func (b *Work) shipper(cfg *config.Config, t config.Ship) *ship.Shipper {
	x, _ := cfg.Telemetry.Exports(os.LookupEnv)
	return &ship.Shipper{
		Log: b.first.Audit.Path, Position: filepath.Join(cfg.State, "ship", t.Name+".json"),
		Kind: ship.Kind(t.To), Format: ship.Format(t.Format), To: endpointOf(t.Target), Resource: b.resource(x),
		Head: b.of.Gateway.Operator().AuditHead, Relays: product.RelaysCalls,
		Failed: func(err error) { b.problem("ship "+t.Name, err) },
	}
}

// shipping tells how far each target is. Callers hold mu.
func (b *Work) shipping() (all []Shipping) {
	for _, name := range slices.Sorted(maps.Keys(b.shippers)) {
		lag, gone := b.shippers[name].Lag()
		all = append(all, Shipping{name, lag, gone})
	}
	return all
}

// shipGauges tell of each target.
func (b *Work) shipGauges() []telemetry.Metric {
	b.mu.Lock()
	all := b.shipping()
	b.mu.Unlock()
	lag := telemetry.Metric{Name: "wasmgate.ship.lag", Help: "Records of the audit log that wait to be sent.", Unit: "{record}", Labels: []string{"target"}}
	gone := telemetry.Metric{Name: "wasmgate.ship.gone", Help: "Records that were removed from the audit log before they were sent.", Unit: "{record}", Kind: telemetry.Counter, Labels: []string{"target"}}
	for _, s := range all {
		lag.Points = append(lag.Points, telemetry.One(float64(s.Lag), s.Target)...)
		gone.Points = append(gone.Points, telemetry.One(float64(s.Gone), s.Target)...)
	}
	return []telemetry.Metric{lag, gone}
}
