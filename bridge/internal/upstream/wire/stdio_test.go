package wire_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

func started(t testing.TB, how string) *upstream.Endpoint {
	t.Helper()
	e := rig.Ready(t, rig.Child(how))
	return e
}

// TestStdio: what children do with lines, right and wrong.
func TestStdio(t *testing.T) {
	big := strings.Repeat("y", 1<<20)
	tests := map[string]struct {
		how, args string
		kind      string
		want      string // in the result
	}{
		"an honest server":                   {"honest", `{"a":1}`, "ok", `"echo":{"a":1}`},
		"a banner and empty lines":           {"banner", `{"a":1}`, "ok", `"echo":{"a":1}`},
		"arguments on several lines":         {"honest", "{\n\t\"a\":\r\n 1}", "ok", "\"echo\":{ \t\"a\":   1}"},
		"numbers and escapes as they are":    {"honest", `{"n":12345678901234567890.10,"s":"\u003c\/"}`, "ok", `"echo":{"n":12345678901234567890.10,"s":"\u003c\/"}`},
		"large arguments":                    {"honest", `{"a":"` + big + `"}`, "ok", big},
		"a large result":                     {"honest", `{"size":5000000}`, "ok", strings.Repeat("x", 5_000_000)},
		"a result that is too large":         {"honest", `{"size":11000000}`, "refused_limit", ""},
		"invalid UTF-8":                      {"latin1", `{}`, "protocol", ""},
		"halves of surrogates":               {"halves", `{}`, "ok", `\ufffd and \ufffd and \ud83d\ude00`},
		"it dies":                            {"dies", `{}`, "transport", ""},
		"it ends without ending its message": {"unfinished", `{}`, "transport", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rig.NoLeaks(t)
			e := started(t, tt.how)
			res, err := rig.Do(t.Context(), t, e, "liar__echo", tt.args)
			if rig.Kind(err) != tt.kind {
				t.Fatalf("%s, want %s: %v", rig.Kind(err), tt.kind, err)
			}
			if !strings.Contains(res.Doc.String(), tt.want) {
				t.Errorf("result %.300s", res.Doc)
			}
			if tt.kind == "refused_limit" { // it lives on, and what it knew with it
				if again, err := rig.Do(t.Context(), t, e, "liar__echo", `{"a":1}`); err != nil || e.Phase() != status.Ready {
					t.Errorf("the next call: %v, %v, phase %s", again.Doc, err, e.Phase())
				}
				return
			}
			rig.Within(t, "its status has the fault", func() bool { return tt.kind == "ok" || e.Status().Fault == fault.Kind(tt.kind) })
			e.Close()
		})
	}
}

// TestStdioLastWords: the fault of a server that died has its exit status and
// what it wrote last.
func TestStdioLastWords(t *testing.T) {
	_, err := rig.Do(t.Context(), t, started(t, "dies"), "liar__echo", "{}")
	var exit *confine.ExitError
	if !errors.As(err, &exit) || exit.Code != 7 || !strings.Contains(err.Error(), `"out of memory"`) {
		t.Error(err)
	}
}

// TestStdioDeaf: a server that does not read does not hold up its callers.
func TestStdioDeaf(t *testing.T) {
	unraced.Long(t)
	rig.NoLeaks(t)
	cfg := rig.Child("deaf")
	cfg.CallTimeout = 200 * time.Millisecond
	e := rig.Ready(t, cfg)
	args := `{"a":"` + strings.Repeat("y", 1<<20) + `"}`
	var wg sync.WaitGroup
	for range 4 { // five would open the circuit
		wg.Go(func() {
			if _, err := rig.Do(t.Context(), t, e, "liar__echo", args); rig.Kind(err) != "timeout" {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := rig.Do(ctx, t, e, "liar__echo", args); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	wg.Wait()
	e.Close()
}

// TestStdioFlood: 100 MB in one line cost no more than a message may.
func TestStdioFlood(t *testing.T) {
	unraced.Long(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e := rig.NewEndpoint(t, rig.Child("floods"))
	if err := e.Connect(t.Context()); rig.Kind(err) != "protocol" {
		t.Error(err)
	}
	e.Close()
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 80 {
		t.Errorf("%d MiB allocated", mb)
	}
}

// TestStdioOrphans: nothing of a server is left once it is faulted or closed.
func TestStdioOrphans(t *testing.T) {
	unraced.Long(t)
	for _, how := range []string{"nonsense", "noise", "honest"} {
		e := rig.NewEndpoint(t, rig.Child(how))
		_ = e.Connect(t.Context()) // what fails is not the point
		e.Close()
	}
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc")
	}
	children, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
	if err != nil {
		t.Skip(err)
	}
	if len(bytes.TrimSpace(children)) > 0 {
		t.Errorf("children are left: %s", children)
	}
}

// FuzzParseMessage: what is accepted is JSON-RPC that another strict parser
// reads alike.
func FuzzParseMessage(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","x":"\ud800"}`, `[]`, `{`, "\xff", `{"jsonrpc":"2.0","a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := wire.ParseMessage(bytes.Clone(b))
		if err != nil {
			return
		}
		again, err := gate.ParseDoc(doc.Raw())
		if err != nil || again.Get("jsonrpc").Text() != "2.0" || again.Digest() != doc.Digest() {
			t.Errorf("%q: %v", b, err)
		}
	})
}
