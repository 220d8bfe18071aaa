package app_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
)

// TestReloadThatIsHalfDone: a reload that has succeeded only in part is tried again as a whole, and the
// status reports it: what could not be removed is still there.
func TestReloadThatIsHalfDone(t *testing.T) {
	cfg := load(t, "version: 1\nservers: {gone: {command: no-such-program-here}, stays: {command: no-such-program-here}}\n")
	a, err := app.New(t.Context(), cfg, quiet, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.EndGateway(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(filepath.Dir(cfg.File), "m.wasm"), noModule)
	write(t, cfg.File, "version: 1\ntools: {m: {module: m.wasm, sha256: '"+strings.Repeat("0", 64)+"'}}\nservers: {stays: {command: no-other-program}}\ngroups: {g: [local__hash]}\nlimits: {session: 3}\n")
	for range 2 {
		err := a.Reread(t.Context())
		if problems := strings.Join(a.Overview.Status().Problems, "\n"); err == nil || !strings.Contains(problems, "how calls are checked: nothing was changed") {
			t.Fatalf("the first step: %v\n%s", err, problems)
		}
		err = a.PutRest(t.Context())
		if err == nil {
			t.Fatal("everything is in place")
		}
		problems := strings.Join(a.Overview.Status().Problems, "\n")
		for _, want := range []string{"server gone was not changed", "server stays was not changed", "groups: nothing was changed"} {
			if !strings.Contains(err.Error(), want) || !strings.Contains(problems, want) {
				t.Errorf("%q is missing in the error and the problems:\n%v\n%s", want, err, problems)
			}
		}
		if !strings.Contains("\n"+err.Error(), "\naudit log ") {
			t.Errorf("that the module was left out could not be recorded, of which nothing is said:\n%v", err)
		}
	}
}

// TestModuleOfAServerComesBack: a server whose module file did not match its digest is back to what it
// was once the file matches again.
func TestModuleOfAServerComesBack(t *testing.T) {
	cfg := load(t, "version: 1\n")
	module := filepath.Join(filepath.Dir(cfg.File), "m.wasm")
	write(t, module, noModule)
	cfg = reload(t, cfg.File, "version: 1\nservers: {m: {module: m.wasm, sha256: "+fmt.Sprintf("%x", sha256.Sum256([]byte(noModule)))+"}}\n")
	a := start(t, cfg)
	fault := func() string {
		if err := a.Reread(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, s := range a.Overview.Status().Servers {
			if s.Server == "m" {
				return s.Error
			}
		}
		return ""
	}

	write(t, module, "another one")
	if got := fault(); !strings.Contains(got, "not the configured one") {
		t.Fatalf("with another module in its file: %q", got)
	}
	write(t, module, noModule)
	if got := fault(); !strings.Contains(got, "not a WebAssembly module") {
		t.Errorf("with its file again: %q", got)
	}
}
