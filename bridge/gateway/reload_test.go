package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// TestSetServerRefuses what cannot be, and leaves the servers as they are.
func TestSetServerRefuses(t *testing.T) {
	var r records
	g := start(t, gateway.Config{Recorder: &r, Functions: map[string][]options.LocalTool{"own": {tool("t", nil)}}, Policy: granting("own__*")})
	tests := map[string]struct {
		server gateway.Server
		says   string
	}{
		"a profile that no one knows":         {gateway.Server{Endpoint: options.Endpoint{Server: "s", Broken: "so"}, Sanitize: "loose"}, `unknown profile "loose"`},
		"a module without anything to run it": {gateway.Server{Endpoint: options.Endpoint{Server: "s"}, Guest: &gateway.Guest{}}, "without modules"},
		"the name of the program's own tools": {gateway.Server{Endpoint: options.Endpoint{Server: "own", Broken: "so"}}, "choose another"},
		"no name":                             {gateway.Server{Endpoint: options.Endpoint{Server: "S s", Broken: "so"}}, "S s"},
	}
	for name, tt := range tests {
		if err := g.SetServer(t.Context(), tt.server); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", name, err, tt.says)
		}
	}
	if err := g.RemoveServer("nobody"); err == nil {
		t.Error("a server that is not there was removed")
	}
	if _, err := call(g, "own__t", `{"text":"x"}`); err != nil || len(g.Fleet().Status()) != 1 {
		t.Errorf("%v, servers %+v", err, g.Fleet().Status())
	}
}

// TestLimitsAtOnce: each limit of the configuration refuses what is beyond it, and the
// refusal says whose it is.
func TestLimitsAtOnce(t *testing.T) {
	tests := map[string]struct {
		limits gateway.Limits
		whose  string
	}{
		"of a session": {gateway.Limits{Session: 1}, "this client"},
		"of a server":  {gateway.Limits{Servers: map[string]int{"f": 1}}, "the server"},
		"of a tool":    {gateway.Limits{Tools: []gateway.ToolLimit{{Pattern: "f__w*", Concurrent: 1}, {Pattern: "f__*", Concurrent: 9}}}, "the tool"},
		"of all":       {gateway.Limits{Concurrent: 1}, "the gateway"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			begun, let := make(chan bool), make(chan bool)
			waits := tool("waits", func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
				begun <- true
				<-let
				return text("done"), nil
			})
			tt.limits.Wait = -1
			g := start(t, gateway.Config{Recorder: new(records), Limits: tt.limits, Policy: granting("f__*"), Functions: map[string][]options.LocalTool{"f": {waits}}})
			ended := make(chan error)
			go func() { _, err := call(g, "f__waits", "{}"); ended <- err }()
			<-begun
			_, err := call(g, "f__waits", "{}")
			if gate.Code(err) != "refused_busy" || !strings.HasPrefix(message.Public(err), "refused: "+tt.whose+" has as many calls under way") || !strings.HasSuffix(message.Public(err), "try again later") {
				t.Errorf("%v: %s", err, message.Public(err))
			}
			close(let)
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRemovedUnderWay: what comes of a call whose server is removed meanwhile is made as
// safe as the server's results were.
func TestRemovedUnderWay(t *testing.T) {
	begun, let := make(chan bool), make(chan bool)
	waits := tool("waits", func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
		close(begun)
		<-let
		return text("a <script>x()</script> b"), nil
	})
	g := start(t, gateway.Config{
		Recorder: new(records), Policy: granting("f__*"), Functions: map[string][]options.LocalTool{"f": {waits}},
		Sanitize: clean.Sanitize{Profile: "off", Servers: map[string]string{"f": "strict"}},
	})
	ended := make(chan gate.Result)
	go func() { res, _ := call(g, "f__waits", "{}"); ended <- res }()
	<-begun
	if err := g.RemoveServer("f"); err != nil {
		t.Fatal(err)
	}
	close(let)
	if got := (<-ended).Doc.At("/content/0/text").Text(); got != "a &lt;script&gt;x()&lt;/script&gt; b" {
		t.Errorf("%q", got)
	}
}
