package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// A fullRecorder keeps no record.
type fullRecorder struct{}

var errFull = errors.New("no space left")

func (fullRecorder) Record(context.Context, *gate.Record) error { return errFull }

func TestNoCallWithoutItsRecord(t *testing.T) {
	called, observed := 0, make(map[gate.Event]error)
	g := start(t, gateway.Config{
		Functions: map[string][]options.LocalTool{"s": {tool("count", func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
			called++
			return text("counted"), nil
		})}},
		Policy: granting("s__*"), Audit: t.TempDir() + "/audit.jsonl", Recorder: fullRecorder{},
		Observe: func(r *gate.Record, _ time.Duration, err error) { observed[r.Event] = err },
	})
	c := g.NewClient(gateway.ClientConfig{})
	_, err := c.CallTool(t.Context(), "s__count", json.RawMessage("{}"))
	if err == nil || called != 0 {
		t.Errorf("err = %v after %d calls; want a refusal and no call: the second recorder is full", err, called)
	}
	if !errors.Is(observed[gate.Granted], errFull) {
		t.Errorf("observed %v after %v; want the error of the record of the grant", observed, err)
	}
}
