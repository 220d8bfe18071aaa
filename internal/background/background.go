package background

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/tracing"
	"github.com/wasmgate/wasmgate/internal/background/altered"
	"github.com/wasmgate/wasmgate/internal/background/ship"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/telemetry"
)

// Work is what runs next to the calls of one gateway. When the configuration of it
// changes, all of it begins anew.
type Work struct {
	first   *config.Config // that of the start, which says where the audit log is
	log     *slog.Logger
	of      Source                            // set by Run
	counts  atomic.Pointer[telemetry.Calls]   // nil while not wanted
	spans   atomic.Pointer[telemetry.Spans]   // nil while not wanted
	sampler atomic.Pointer[telemetry.Sampler] // nil while there are no spans
	baggage atomic.Bool                       // goes on to servers
	changed chan struct{}                     // has a token when wanted has changed

	mu       sync.Mutex
	wanted   *config.Config
	problems map[string]string // by what has them
	metrics  string            // URL
	shippers map[string]*ship.Shipper

	documents atomic.Pointer[keptDocuments] // nil while none are kept

	// Altered counts the results that were changed.
	Altered altered.Counts

	noticed map[string]bool // keys of conditions that were reported; of the one goroutine that reports
}

// A Source is what is reported on.
type Source struct {
	Gateway    *gateway.Gateway
	Gauges     telemetry.Source                  // what the gateway is at the moment
	Conditions func(context.Context) []Condition // that people should hear of
	// Reports says whether a new condition is reported here, and not by another gateway that sees it, too.
	Reports func(context.Context, Condition) bool
}

// New returns what runs next to a gateway that begins with a configuration.
func New(cfg *config.Config, log *slog.Logger) *Work {
	b := &Work{first: cfg, log: log, changed: make(chan struct{}, 1), problems: make(map[string]string)}
	b.want(cfg)
	return b
}

// Put makes what runs that which a configuration says.
func (b *Work) Put(c *config.Config) {
	b.Altered.Reset()
	b.mu.Lock()
	same := reflect.DeepEqual(b.wanted.Telemetry, c.Telemetry) && reflect.DeepEqual(b.wanted.Audit.Anchor, c.Audit.Anchor) && reflect.DeepEqual(b.wanted.Notify, c.Notify) &&
		reflect.DeepEqual(b.wanted.Audit.Arguments, c.Audit.Arguments)
	b.mu.Unlock()
	if !same {
		b.want(c)
	}
}

func (b *Work) want(c *config.Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(c)
	b.wanted = c
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// count begins to count and to take spans, if anybody wants to know. Counts go on unless
// there is to be another number of them.
func (b *Work) count(c *config.Config) {
	x, _ := c.Telemetry.Exports(os.LookupEnv)
	switch series := c.Telemetry.Metrics.Series; {
	case c.Telemetry.Metrics.Listen == "" && x.Metrics == nil:
		b.counts.Store(nil)
	case b.counts.Load() == nil || b.wanted.Telemetry.Metrics.Series != series:
		b.counts.Store(telemetry.NewCalls(series))
	}
	b.baggage.Store(c.Telemetry.Baggage)
	b.spans.Store(nil)
	b.sampler.Store(nil)
	if x.Traces != nil {
		b.spans.Store(telemetry.NewSpans(c.Telemetry.Traces.Refused))
		b.sampler.Store(telemetry.NewSampler(x.Ratio, x.TrustParent))
	}
}

// Observe gets each record: see [gateway.Config].
func (b *Work) Observe(r *gate.Record, kept time.Duration, err error) {
	b.Altered.Observe(r)
	if c := b.counts.Load(); c != nil {
		c.Observe(r, kept, err)
	}
	if s := b.spans.Load(); s != nil {
		s.Observe(r, err)
	}
}

// Place places a call in a trace: see [gateway.Config].
func (b *Work) Place(c *gate.Call) tracing.Context {
	if s := b.sampler.Load(); s != nil {
		return s.Place(c)
	}
	return tracing.Context{}
}

// SessionLasted gets each session that has ended: see [gateway.Config].
func (b *Work) SessionLasted(d time.Duration) { b.counts.Load().Session(d) }

// Baggage reports whether the baggage of requests goes on to servers: see [gateway.Config].
func (b *Work) Baggage() bool { return b.baggage.Load() }

// Run runs it until ctx ends.
func (b *Work) Run(ctx context.Context, of Source) {
	b.of = of
	for ctx.Err() == nil {
		select {
		case <-b.changed:
		default:
		}
		b.mu.Lock()
		cfg := b.wanted
		clear(b.problems)
		b.mu.Unlock()
		b.runAs(ctx, cfg)
	}
}

// runAs runs what a configuration says, until another is wanted.
func (b *Work) runAs(ctx context.Context, cfg *config.Config) {
	ctx, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	if cfg.Telemetry.Metrics.Listen != "" {
		all.Go(func() { b.serveMetrics(ctx, cfg.Telemetry.Metrics) })
	}
	b.export(ctx, &all, cfg)
	b.shipAll(ctx, &all, cfg)
	b.notifyAll(ctx, &all, cfg)
	b.keepDocuments(ctx, &all, cfg)
	if cfg.Audit.Anchor.Every > 0 {
		all.Go(func() { b.anchor(ctx, cfg.Audit.Anchor) })
	}
	select {
	case <-b.changed:
	case <-ctx.Done():
	}
}

// problem says what is wrong with one part of it, nil that nothing is.
func (b *Work) problem(part string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		delete(b.problems, part)
	} else if text := part + ": " + err.Error(); b.problems[part] != text {
		b.problems[part] = text
		b.log.Warn("calls pass as before", "part", part, "error", err)
	}
}

// A State tells how it is.
type State struct {
	Metrics  string // URL; "" without
	Shipping []Shipping
	Problems []string
}

// State tells how it is.
func (b *Work) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := State{Metrics: b.metrics, Shipping: b.shipping()}
	for _, part := range slices.Sorted(maps.Keys(b.problems)) {
		s.Problems = append(s.Problems, b.problems[part])
	}
	for _, one := range s.Shipping {
		if one.Gone > 0 {
			s.Problems = append(s.Problems, fmt.Sprintf("ship %s: %d records were removed from the audit log before they could be sent: raise audit.hold or audit.hard_max", one.Target, one.Gone))
		}
	}
	if spans := b.spans.Load(); spans != nil && spans.Lost() > 0 {
		s.Problems = append(s.Problems, fmt.Sprintf("traces: the spans of %d calls were lost, because they came faster than they were taken", spans.Lost()))
	}
	if c := b.counts.Load(); c != nil && c.Overflow() > 0 {
		s.Problems = append(s.Problems, "metrics: there are more names than telemetry.metrics.series has room for; the others are counted as "+telemetry.Other)
	}
	return s
}
