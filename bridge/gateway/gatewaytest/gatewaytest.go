// Package gatewaytest records what servers answer, for the tests of programs that call them through
// a gateway, and gives it out again without the servers.
//
//	func TestAgent(t *testing.T) {
//		cfg := config() // of the program, with its servers and its policy
//		gw := gatewaytest.Replay(t, cfg, "testdata/session.json")
//		runAgent(gw.NewClient(gateway.ClientConfig{}))
//		if left := gw.Left(); len(left) > 0 {
//			t.Errorf("not called: %q", left)
//		}
//	}
//
// The file is made by the same test with [Record] in place of [Replay]. It holds the definitions of
// tools and prompts, and calls with their results, as the gate let them pass: sanitized, without
// secrets that it knows. It holds no time, no id and no policy.
package gatewaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/policy"
)

// saved is the content of the file.
type saved struct {
	Servers []server `json:"servers"`
	Calls   []call   `json:"calls"`
}

type server struct {
	ID      string `json:"server"`
	Tools   []doc  `json:"tools,omitempty"`
	Prompts []doc  `json:"prompts,omitempty"`
}

type call struct {
	Action    gate.Action `json:"action"`
	Server    string      `json:"server,omitempty"` // of a prompt or a resource
	Name      string      `json:"name"`
	Digest    string      `json:"tool_digest,omitempty"`
	Args      string      `json:"args_sha256"`
	Arguments doc         `json:"arguments,omitzero"`
	Result    doc         `json:"result"`
}

// doc is a document that is read as strictly as the gate reads, without the spaces that it has in
// the file for people.
type doc struct{ gate.Doc }

// UnmarshalJSON implements [json.Unmarshaler].
func (d *doc) UnmarshalJSON(b []byte) error {
	var bare bytes.Buffer
	if err := json.Compact(&bare, b); err != nil {
		return err
	}
	parsed, err := gate.ParseDoc(bare.Bytes())
	d.Doc = parsed
	return err
}

// docs returns what a gateway takes.
func docs(all []doc) (bare []gate.Doc) {
	for _, d := range all {
		bare = append(bare, d.Doc)
	}
	return bare
}

// Record starts the gateway of a configuration, waits for its servers, and writes what was
// called, and what they declare, to a file when the test ends without a failure. Audit and
// AuditOptions of the configuration are the recording's own, below the test's temporary folder.
func Record(t testing.TB, cfg gateway.Config, file string) *gateway.Gateway {
	t.Helper()
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	cfg.Audit, cfg.AuditOptions = log, audit.Options{Node: "recording", Record: "full"}
	g := start(t, cfg, func(g *gateway.Gateway) {
		if t.Failed() {
			return
		}
		if err := write(file, log, g); err != nil {
			t.Errorf("gatewaytest: record %s: %v", file, err)
		}
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatalf("gatewaytest: record: %v", err)
	}
	return g
}

// write writes the recording that a log holds of a gateway.
func write(file, log string, g *gateway.Gateway) error {
	var r saved
	calls, err := recording.Read(context.Background(), log)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if runs(g, c.Tool) {
			continue
		}
		r.Calls = append(r.Calls, call{c.Action, c.Server, c.Tool, c.Digest, c.Args, doc{c.Arguments}, doc{c.Result}})
	}
	for _, d := range g.Fleet().Declared() {
		if product.RelaysCalls(d.Server) {
			continue
		}
		r.Servers = append(r.Servers, server{
			d.Server, offered(g, gate.FeatureTool, d.Server, d.Tools), offered(g, gate.FeaturePrompt, d.Server, d.Prompts),
		})
	}
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

// runs reports whether a tool does when the recording is replayed: a module that only computes.
func runs(g *gateway.Gateway, name string) bool {
	return slices.ContainsFunc(g.Fleet().KnownFeatures(gate.FeatureTool), func(t *gate.Tool) bool {
		return t.Name.String() == name && t.Sandboxed && string(t.Capabilities.Canonical()) == "{}"
	})
}

// offered returns those of a server's definitions that are not quarantined.
func offered(g *gateway.Gateway, one gate.Feature, server string, declared []gate.Doc) (all []doc) {
	known := g.Fleet().KnownFeatures(one)
	for _, d := range declared {
		if slices.ContainsFunc(known, func(t *gate.Tool) bool { return t.Name.Server == server && t.Local == d.Get("name").Text() }) {
			all = append(all, doc{d})
		}
	}
	return all
}

// Replayed is a gateway whose servers are a recording.
type Replayed struct{ *gateway.Gateway }

// Replay starts the gateway of a configuration. The file that [Record] has written answers in place
// of its servers and its Go functions, and no server is started. Modules that only compute run.
// With the configuration that was recorded, clients are offered the same tools, and refused the
// same calls. A configuration without a policy grants everybody all that is recorded. Without Audit
// and Recorder nothing is kept of the calls.
//
// A call fails the test if the recording has no answer left for its tool with its arguments. The
// test's error names both, and the caller gets an error that says not to try again.
func Replay(t testing.TB, cfg gateway.Config, file string) Replayed {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("gatewaytest: replay: %v", err)
	}
	var r saved
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("gatewaytest: replay %s: %v", file, err)
	}
	var ended sync.Mutex // nothing is reported to a test that has ended
	over := false
	replay := recording.Replay{Lacks: func(c *gate.Call) {
		ended.Lock()
		defer ended.Unlock()
		if !over {
			t.Errorf("gatewaytest: %s holds no answer that was not given yet to %s with %s", file, c.Name, c.Args)
		}
	}}
	for _, c := range r.Calls {
		replay.Calls = append(replay.Calls, c.recorded())
	}
	for _, s := range r.Servers {
		replay.Declared = append(replay.Declared, status.Declaration{Server: s.ID, Tools: docs(s.Tools), Prompts: docs(s.Prompts)})
	}
	cfg.Replay = &replay
	if cfg.Policy.Files == nil && len(cfg.Policy.Options.Packs)+len(cfg.Policy.Options.Grants) == 0 {
		all := []string{"*"}
		cfg.Policy.Options.Grants = []policy.Grant{{To: []string{"*", "*/*"}, Tools: all, Prompts: all, Resources: all}}
	}
	if cfg.Audit == "" && cfg.Recorder == nil {
		cfg.Recorder = unrecorded{}
	}
	g := start(t, cfg, func(*gateway.Gateway) {
		ended.Lock()
		over = true
		ended.Unlock()
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatalf("gatewaytest: replay %s: %v", file, err)
	}
	return Replayed{g}
}

// recorded returns a call as a gateway takes it.
func (c call) recorded() recording.Call {
	of := recording.Call{
		Action: c.Action, Server: c.Server, Tool: c.Name, Digest: c.Digest, Args: c.Args, Arguments: c.Arguments.Doc, Result: c.Result.Doc,
	}
	for name := range c.Arguments.Members() {
		if c.Action == gate.GetPrompt {
			of.Named = append(of.Named, name)
		}
	}
	slices.Sort(of.Named)
	return of
}

// Left returns what was recorded and not called so far, in its order: each a name and arguments.
func (r Replayed) Left() (calls []string) {
	for _, c := range r.ReplayLeft() {
		calls = append(calls, fmt.Sprintf("%s %s", c.Tool, c.Arguments))
	}
	return calls
}

// start starts a gateway, which is closed at the end of the test, after last.
func start(t testing.TB, cfg gateway.Config, last func(*gateway.Gateway)) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(t.Context(), cfg)
	if err != nil {
		t.Fatalf("gatewaytest: %v", err)
	}
	t.Cleanup(func() {
		last(g)
		if err := g.Close(context.Background()); err != nil {
			t.Errorf("gatewaytest: %v", err)
		}
	})
	return g
}

type unrecorded struct{}

// Record implements [gate.Recorder].
func (unrecorded) Record(context.Context, *gate.Record) error { return nil }
