package gate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// TestLarge: large arguments wait for their turn before they are decided on, and large results
// before they are sanitized.
func TestLarge(t *testing.T) {
	large := `"` + strings.Repeat("a", 64<<10) + `"`
	for name, tt := range map[string]struct {
		args, result string
		want         string
	}{
		"neither":   {`{}`, `{"structuredContent":1}`, "enter authorize invoke sanitize"},
		"arguments": {`{"a":` + large + `}`, `{"structuredContent":1}`, "enter work authorize invoke sanitize"},
		"a result":  {`{}`, `{"structuredContent":{"a":` + large + `}}`, "enter authorize invoke work sanitize"},
	} {
		r := newRig()
		r.tool.Output = nil
		r.invoke = func(context.Context, *gate.Call) (gate.Result, error) { return answer(tt.result), nil }
		c := newCall()
		c.Args = gate.MustDoc(tt.args)
		if _, err := r.do(t, c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, s := range r.trace {
			if strings.Contains("enter work authorize invoke sanitize", s) && (len(got) == 0 || got[len(got)-1] != s) {
				got = append(got, s)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, " "), tt.want)
		}
	}
}
