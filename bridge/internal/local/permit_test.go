package local_test

import (
	"errors"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/gate"
)

// What reaches servers and modules carries out nothing that the gate has not permitted.
func TestNoPermit(t *testing.T) {
	for name, u := range map[string]gate.Upstream{"server": new(upstream.Endpoint), "local": new(local.Server)} {
		if _, err := u.Invoke(t.Context(), gate.Permit{}); !errors.Is(err, upstream.ErrNoPermit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
