package audit_test

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate/audit"
)

// IsLog recognizes a log by how its own lines begin, and loses nothing of it.
func TestIsLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, audit.Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		string(written): true, "\n " + string(written): true,
		"": false, `{"id":"s","log":"n/b"}`: false, `{"log`: false,
	} {
		r := bufio.NewReader(strings.NewReader(text))
		if got := audit.IsLog(r); got != want {
			t.Errorf("IsLog(%.40q) = %t, want %t", text, got, want)
		}
		if rest, _ := io.ReadAll(r); string(rest) != text {
			t.Errorf("of %.40q is left %.40q", text, rest)
		}
	}
}
