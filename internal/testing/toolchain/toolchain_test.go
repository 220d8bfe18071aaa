package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A program that is there but does not work, as rustup's rustc without a toolchain, is not
// found by its name: it is tried, once.
func TestABrokenProgramIsSkippedOrRequired(t *testing.T) {
	if try(os.Getenv("PATH"), "sh") != nil {
		t.Skip("there is no sh")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	script := "#!/bin/sh\necho x >>'" + dir + "/uses'\necho 'no default toolchain is configured' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "broken"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		program, required string
		skipped, failed   bool
	}{
		{"broken", "", true, false}, {"broken", "node broken", false, true}, {"broken", "node brokener", true, false},
		{"missing-program", "", true, false}, {"missing-program", "missing-program", false, true}, {"sh", "sh", false, false},
	} {
		t.Setenv("WASMGATE_REQUIRE", tt.required)
		r := &recorder{TB: t}
		done := make(chan bool)
		go func() { // that a skip or failure ends
			defer close(done)
			if path := NeedPath(r, "sh", tt.program); path != os.Getenv("PATH") {
				t.Errorf("%s works with %s", tt.program, path)
			}
		}()
		<-done
		if r.skipped != tt.skipped || r.failed != tt.failed || tt.program == "broken" && !strings.Contains(r.said, "no default toolchain is configured") {
			t.Errorf("%s, required %q: %+v", tt.program, tt.required, r)
		}
	}
	if uses, err := os.ReadFile(filepath.Join(dir, "uses")); err != nil || string(uses) != "x\nx\n" { // once for each PATH
		t.Errorf("tried %q, %v", uses, err)
	}
}

// A recorder is a test that notes how it ends.
type recorder struct {
	testing.TB
	skipped, failed bool
	said            string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped, r.said = true, fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed, r.said = true, fmt.Sprintf(format, args...)
	runtime.Goexit()
}
