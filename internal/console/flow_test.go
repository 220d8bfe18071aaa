package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// The page of a call that was stopped says where the session had met its values.
func TestCallSaysWhereValuesWereMet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, audit.Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []audit.Entry{{ID: "first", Code: "ok"}, {ID: "send", Code: "refused_authorize", Met: []string{"/<b>: untrusted, at /from of mail__find in call first"}}} {
		e.Event = gate.Done
		if err := log.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, "", "state/audit.jsonl", string(written))
	if page := d.get("/ui/calls/send"); !strings.Contains(page, `<bdi>/&lt;b&gt;</bdi></td><td><a href="/ui/calls/first"><bdi>/&lt;b&gt;: untrusted, at /from of mail__find in call first</bdi>`) {
		t.Errorf("the page is\n%s", page)
	}
	if page := d.get("/ui/calls/first"); strings.Contains(page, "had met") {
		t.Error("so does that of a call that was let pass")
	}
}
