package fault_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/fault"
)

// TestCalled checks what a client reads after a call, and whether it may call again.
func TestCalled(t *testing.T) {
	const (
		broke = "the connection to the server broke"
		ran   = "; it may have carried out the call, so find out before you call again"
	)
	tests := map[string]struct {
		kind       fault.Kind
		doing      string
		repeatable bool
		want       string
	}{
		"broke":                 {fault.Transport, "call", false, broke + ran},
		"broke, can repeat":     {fault.Transport, "call", true, broke + "; call again"},
		"late":                  {fault.TimedOut, "call", false, "the server did not answer in time" + ran},
		"could not connect":     {fault.Transport, "connect", false, "the server cannot be reached; try again later"},
		"late to connect":       {fault.TimedOut, "connect", false, "the server did not answer in time"},
		"an answer, not a call": {fault.Protocol, "call", false, "the server's answer is not valid"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, ok := errors.AsType[*fault.Fault](fault.Called(fault.New(tt.kind, "s", tt.doing, errors.New("x")), tt.repeatable))
			if !ok || f.Public() != tt.want || f.Repeatable() == strings.HasSuffix(f.Public(), ran) {
				t.Errorf("got %q, repeatable %v, want %q", f.Public(), f.Repeatable(), tt.want)
			}
		})
	}
}
