package tee_test

import (
	"context"
	"errors"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/tee"
	"github.com/wasmgate/wasmgate/gate"
)

// log keeps records until it is full.
type log struct{ kept, size int }

var errFull = errors.New("full")

func (l *log) Record(context.Context, *gate.Record) error {
	if l.kept == l.size {
		return errFull
	}
	l.kept++
	return nil
}

func TestRecorders(t *testing.T) {
	a, b := &log{size: 1}, &log{size: 9}
	rec := tee.Recorders(a, b)
	if err := rec.Record(t.Context(), &gate.Record{Event: gate.Granted}); err != nil || a.kept != 1 || b.kept != 1 {
		t.Errorf("err = %v, %d and %d records; want one each", err, a.kept, b.kept)
	}
	if err := rec.Record(t.Context(), &gate.Record{Event: gate.Done}); !errors.Is(err, errFull) || b.kept != 1 {
		t.Errorf("err = %v, %d records behind it; want the first error to stop", err, b.kept-1)
	}
	if err := tee.Recorders().Record(t.Context(), &gate.Record{}); err == nil {
		t.Error("no recorder kept a record")
	}
}
