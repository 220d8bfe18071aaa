package gateway_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/bridge/gateway"
)

// The log tells the operator by which command a refused call would pass; of what
// no command allows it is silent.
func TestRefusalsAreLoggedWithTheirRemedy(t *testing.T) {
	var log bytes.Buffer
	g := start(t, gateway.Config{
		Recorder: new(records), Functions: map[string][]bridge.LocalTool{"a": {tool("t", nil)}},
		Policy: granting("b__*"), Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if _, err := call(g, "a__t", `{"text":"x"}`); err == nil {
		t.Fatal("the call passed")
	}
	if _, err := call(g, "a__none", `{}`); err == nil {
		t.Fatal("the call of nothing passed")
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], `msg="call refused" tool=a__t principal=local code=refused_`) || !strings.Contains(lines[0], "remedy=\"wasmgate grant ") {
		t.Errorf("logged %q", lines)
	}
}
