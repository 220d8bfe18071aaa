package background

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/watch"
	"github.com/wasmgate/wasmgate/internal/telemetry"
	"github.com/wasmgate/wasmgate/internal/web"
	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

// listenAgain is how long after a failure an address is tried again.
const listenAgain = 5 * time.Second

// serveMetrics serves Prometheus until ctx ends.
func (b *Work) serveMetrics(ctx context.Context, c config.Metrics) {
	for {
		on, err := web.Listen(ctx, c.Listen, "telemetry.metrics.listen in the configuration")
		if err == nil {
			b.problem("metrics", nil)
			err = b.serveMetricsOn(ctx, on)
		}
		if ctx.Err() != nil {
			return
		}
		b.problem("metrics", err)
		if !watch.Wait(ctx, listenAgain) {
			return
		}
	}
}

func (b *Work) serveMetricsOn(ctx context.Context, on net.Listener) error {
	b.setMetricsURL("http://" + on.Addr().String() + "/metrics")
	defer b.setMetricsURL("")
	mux := http.NewServeMux()
	b.of.Gateway.Operator().HandleHealth(mux)
	mux.Handle("GET /metrics", telemetry.Handler(b.counted, b.of.Gauges))
	var h http.Handler = mux
	if loopback.Host(on.Addr().String()) {
		h = loopback.Only(mux)
	}
	return web.Serve(ctx, &http.Server{Handler: h, ReadHeaderTimeout: web.HeaderTime, ReadTimeout: web.HeaderTime, IdleTimeout: web.IdleTime}, on)
}

func (b *Work) setMetricsURL(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.metrics = url
}

// counted is what was counted, with what was lost on the way to others.
func (b *Work) counted() (all []telemetry.Metric) {
	if c := b.counts.Load(); c != nil {
		all = c.Metrics()
	}
	if s := b.spans.Load(); s != nil {
		all = append(all, telemetry.Metric{
			Name: "wasmgate.telemetry.lost", Help: "What was to be exported and was lost.", Unit: "{call}", Kind: telemetry.Counter,
			Labels: []string{"signal"}, Points: telemetry.One(float64(s.Lost()), "traces"),
		})
	}
	return append(all, b.shipGauges()...)
}
