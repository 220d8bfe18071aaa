package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

// A gateway serves while a module is compiled that takes a while, and says so; the
// module's tools come then. A second gateway finds it compiled.
func TestServesBeforeItHasCompiled(t *testing.T) {
	unraced.Long(t)
	wasm, err := sandbox.EmbeddedFiles()
	if err != nil {
		t.Fatal(err)
	}
	greet, err := gateway.Func("greet", "Greets.", func(context.Context, struct{}) (string, error) { return "hello", nil })
	if err != nil {
		t.Fatal(err)
	}
	cfg := gateway.Config{
		Recorder: new(records), Policy: granting("*"), LeaveOut: true, CacheDir: filepath.Join(t.TempDir(), "wasm"),
		Modules:   []gateway.Module{{WASM: wasm, Config: sandbox.ModuleConfig{Name: "files"}}},
		Functions: map[string][]options.LocalTool{"go": {greet}},
	}
	g := start(t, cfg)
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	res, err := http.Get(srv.URL + "/healthz")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()
	if res, err := call(g, "go__greet", "{}"); err != nil || res.Text() != "hello" {
		t.Errorf("meanwhile: %v, %v", res, err)
	}
	if m := g.Modules()[0]; m.Progress == "" || m.Error != "" || m.Tools != 0 {
		t.Errorf("meanwhile: %+v", m)
	}
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := g.Modules()[0]; m.Progress != "" || m.Error != "" || m.Tools != 1 {
		t.Errorf("then: %+v", m)
	}
	if res, err := call(g, "local__repo_scan", `{"roots":["/nowhere"]}`); err != nil || !strings.Contains(res.Text(), "not granted to this tool") {
		t.Errorf("then: %v, %v", res, err)
	}
	if m := start(t, cfg).Modules()[0]; m.Progress != "" || m.Tools != 1 {
		t.Errorf("another gateway: %+v", m)
	}
}

// A new version of a module that cannot be used leaves the old one in its place, as long
// as nothing else has changed that the operator says of it.
func TestNewVersionThatDoesNotCompile(t *testing.T) {
	old := saying(t, "one", "a", "first")
	broken := old
	broken.WASM = []byte("no module")
	named, granted := broken, broken
	named.Named = true
	granted.Grant.KV = true
	for name, tt := range map[string]struct {
		module gateway.Module
		says   string
	}{
		"its file":                    {broken, `"first"`},
		"it is named by its digest":   {named, ""},
		"it is granted another thing": {granted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, gateway.Config{Recorder: new(records), Policy: granting("*"), Modules: []gateway.Module{old}, CacheDir: compiled.Folder(t)})
			err := g.SetModules(t.Context(), []gateway.Module{tt.module}, nil)
			if _, ok := errors.AsType[*gateway.ModuleError](err); !ok {
				t.Errorf("error %v", err)
			}
			res, _ := call(g, "local__a", "{}")
			if got := res.Text(); got != tt.says {
				t.Errorf("it says %q, want %q", got, tt.says)
			}
			m := g.Modules()[0]
			if stays := tt.says != ""; stays != (m.Error == "") || stays != strings.Contains(m.Note, "its file has changed, but the new version cannot run: ") {
				t.Errorf("status %+v", m)
			}
			if err := g.SetModules(t.Context(), []gateway.Module{saying(t, "one", "a", "second")}, nil); err != nil {
				t.Error(err)
			}
			if res, err := call(g, "local__a", "{}"); err != nil || res.Text() != `"second"` || g.Modules()[0].Note != "" {
				t.Errorf("a version that compiles: %v, %v, %+v", res, err, g.Modules()[0])
			}
		})
	}
}

// Nothing is left of a module server whose connection has ended, whatever it does.
func TestModuleServerEndsWithItsConnection(t *testing.T) {
	section := func(id byte, content string) string { return string([]byte{id, byte(len(content))}) + content }
	name := func(s string) string { return string([]byte{byte(len(s))}) + s }
	// loop { poll_oneoff(a clock of weeks) }
	body := "\x00\x03\x40\x41\x00\x41\xc0\x00\x41\x01\x41\x80\x01\x10\x00\x1a\x0c\x00\x0b\x0b"
	clock := strings.Repeat("\x00", 16) + "\x01" + strings.Repeat("\x00", 11) + "\x00\x00\x10\x00" + strings.Repeat("\x00", 16)
	asleep := "\x00asm\x01\x00\x00\x00" +
		section(1, "\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00") +
		section(2, "\x01"+name("wasi_snapshot_preview1")+name("poll_oneoff")+"\x00\x00") +
		section(3, "\x01\x01") + section(5, "\x01\x00\x01") +
		section(7, "\x02"+name("memory")+"\x02\x00"+name("_start")+"\x00\x01") +
		section(10, "\x01"+name(body)) + section(11, "\x01\x00\x41\x00\x0b"+name(clock))
	g := start(t, gateway.Config{
		Recorder: new(records), Policy: granting("*"), CacheDir: compiled.Folder(t),
		Servers: []options.Endpoint{{Server: "asleep", ConnectTimeout: 100 * time.Millisecond}},
		Guests: map[string]gateway.Guest{"asleep": {
			WASM: []byte(asleep), Config: sandbox.ModuleConfig{Name: "asleep", Limits: sandbox.Limits{Timeout: time.Hour}},
		}},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := g.Fleet().Status()[0]; s.Phase != status.Faulted {
		t.Fatalf("a server that does not answer: %+v", s)
	}
	if err := g.RemoveServer("asleep"); err != nil {
		t.Fatal(err)
	}
	stacks := make([]byte, 1<<20)
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		all := stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(all, []byte("sandbox.(*Module).Serve(")) {
			return
		}
		if time.Now().After(until) {
			t.Fatal("it is still there")
		}
	}
}

// Modules that are compiled one after the other were there from the beginning: none of
// them is new to the pins, with or without the embedded tools on their server. One that a
// reload brings is.
func TestCompiledLaterIsNotNew(t *testing.T) {
	unraced.Long(t)
	for name, embedded := range map[string]bool{"alone": false, "beside the embedded tools": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			one, two, late := saying(t, "one", "a", "first"), saying(t, "two", "b", "second"), saying(t, "late", "c", "third")
			g := start(t, gateway.Config{
				Recorder: new(records), Policy: granting("*"), LeaveOut: true, Embedded: embedded, CacheDir: filepath.Join(dir, "wasm"),
				Modules: []gateway.Module{one, two}, Pins: &options.Pins{Mode: options.PinTrustFirst, Dir: filepath.Join(dir, "pins")},
			})
			if err := g.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			for tool, says := range map[string]string{"local__a": `"first"`, "local__b": `"second"`} {
				if res, err := call(g, tool, "{}"); err != nil || res.Text() != says {
					t.Errorf("%s: %v, %v", tool, res, err)
				}
			}
			if err := g.SetModules(t.Context(), []gateway.Module{one, two, late}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := call(g, "local__c", "{}"); gate.Code(err) != "refused_pin" {
				t.Errorf("a module that a reload brings: %v", err)
			}
		})
	}
}
