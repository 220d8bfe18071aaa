package background

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/telemetry"
	"github.com/wasmgate/wasmgate/internal/web"
)

// export sends metrics and spans by OTLP until ctx ends.
func (b *Work) export(ctx context.Context, all *sync.WaitGroup, cfg *config.Config) {
	x, errs := cfg.Telemetry.Exports(os.LookupEnv)
	b.problem("environment", errors.Join(errs...))
	e := &telemetry.Exporter{
		Resource: b.resource(x), Sources: []telemetry.Source{b.counted, b.of.Gauges}, Every: x.Every, Spans: b.spans.Load(),
		Failed: func(signal string, err error) { b.problem("otlp "+signal, err) },
	}
	if x.Metrics != nil {
		e.Metrics = endpointOf(*x.Metrics)
		all.Go(func() { e.ExportMetrics(ctx) })
	}
	if x.Traces != nil && e.Spans != nil {
		e.Traces = endpointOf(*x.Traces)
		all.Go(func() { e.ExportSpans(ctx) })
	}
}

// resource says in what is exported which gateway it is.
func (b *Work) resource(x config.Exports) []telemetry.Attribute {
	all := []telemetry.Attribute{{Name: "service.version", Value: product.Version()}}
	if node, err := state.Node(b.first.State, b.first.Store.Node); err == nil {
		all = append(all, telemetry.Attribute{Name: "service.instance.id", Value: node})
	}
	for _, a := range x.Resource {
		all = append(all, telemetry.Attribute{Name: a[0], Value: a[1]})
	}
	return all
}

// endpointOf returns what sends to a target that the operator has named: through the one
// dialer, and nowhere else.
func endpointOf(t config.Target) *telemetry.Endpoint {
	e := &telemetry.Endpoint{URL: t.URL, Headers: make(map[string]string), Timeout: t.Timeout, Gzip: t.Gzip, Client: sender(t.Private)}
	for name, value := range t.Headers {
		e.Headers[name] = string(value)
	}
	return e
}

// sender returns a client that follows no redirects and goes through no proxy.
func sender(private bool) *http.Client {
	return &http.Client{
		CheckRedirect: telemetry.NoRedirects,
		Transport: &http.Transport{
			DialContext: dial.New(dial.Options{}).Dialer(private), ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConns: 2, IdleConnTimeout: web.IdleTime, MaxResponseHeaderBytes: 64 << 10,
		},
	}
}
