package upstream_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// TestRepeatable: a call that broke or was late may be made again only if that is safe.
func TestRepeatable(t *testing.T) {
	tool := func(annotations string) string {
		return `{"name":"echo","inputSchema":{"type":"object"},"annotations":{` + annotations + `}}`
	}
	for name, tt := range map[string]struct {
		tool, answer string
		safe         bool
	}{
		"late":              {tool(""), "-", false},
		"late, idempotent":  {tool(`"idempotentHint":true`), "-", true},
		"late, reads":       {tool(`"readOnlyHint":true`), "-", true},
		"broke":             {tool(`"destructiveHint":false`), "!", false},
		"broke, idempotent": {tool(`"idempotentHint":true`), "!", true},
		"an error":          {tool(`"readOnlyHint":true`), "?no", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rig.NewScript(map[string]string{"tools/call": tt.answer})
				s.List(tt.tool)
				cfg := s.Config("s")
				cfg.CallTimeout = time.Minute
				e := rig.Ready(t, cfg)
				if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); gate.Retryable(err) != tt.safe {
					t.Errorf("retryable %v: %v", gate.Retryable(err), err)
				}
				e.Close()
			})
		})
	}
}
