package gateway

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// observed has somebody told of each record after it was kept, or could not be.
type observed struct {
	gate.Recorder
	observe func(r *gate.Record, kept time.Duration, err error) // nil tells nobody
}

// Record implements [gate.Recorder].
func (o observed) Record(ctx context.Context, r *gate.Record) error {
	if o.observe == nil {
		return o.Recorder.Record(ctx, r)
	}
	began := time.Now()
	err := o.Recorder.Record(ctx, r)
	o.observe(r, time.Since(began), err)
	return err
}
