// Package tee gives each record to several who keep records.
package tee

import (
	"context"
	"errors"

	"github.com/wasmgate/wasmgate/gate"
)

// Recorders returns a Recorder that gives each record to all of rs in order. The
// first error stops.
func Recorders(rs ...gate.Recorder) gate.Recorder { return recorders(rs) }

type recorders []gate.Recorder

func (rs recorders) Record(ctx context.Context, r *gate.Record) error {
	if len(rs) == 0 {
		return errors.New("no recorder keeps records")
	}
	for _, one := range rs {
		if err := one.Record(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
