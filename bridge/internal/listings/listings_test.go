package listings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/listings"
	"github.com/wasmgate/wasmgate/gate"
)

// TestStore: what is saved is loaded again byte for byte, for that server and configuration
// only.
func TestStore(t *testing.T) {
	s := listings.Store{Dir: filepath.Join(t.TempDir(), "new")}
	if _, known, err := s.Load("s", "c"); known || err != nil {
		t.Errorf("before the first: %v, %v", known, err)
	}
	tool := gate.MustDoc(`{"name":"<a>","inputSchema":{"n":1.0e2}}`)
	saved := listings.Listing{Config: "c", TLSKey: "k", Tools: []gate.Doc{tool}, Resources: []gate.Doc{gate.MustDoc(`{"uri":"x:y"}`)}, Capabilities: gate.MustDoc(`{"resources":{}}`)}
	for range 2 {
		if err := s.Save("s", saved); err != nil {
			t.Fatal(err)
		}
	}
	l, known, err := s.Load("s", "c")
	if !known || err != nil || l.Tools[0].Digest() != tool.Digest() || l.TLSKey != "k" || len(l.Resources) != 1 || !l.Instructions.IsZero() || l.Capabilities.String() != `{"resources":{}}` {
		t.Errorf("%+v, %v, %v", l, known, err)
	}
	for _, other := range [][2]string{{"s", "d"}, {"t", "c"}} {
		if _, known, err := s.Load(other[0], other[1]); known || err != nil {
			t.Errorf("%v: %v, %v", other, known, err)
		}
	}
}

// TestUnreadable: a file that is damaged is an error, one of another format is not known, and
// what is too large is not kept.
func TestUnreadable(t *testing.T) {
	s := listings.Store{Dir: t.TempDir()}
	for name, text := range map[string]string{"empty": "", "cut": `{"format":1,"config":"c","tools":[{"na`, "member twice": `{"format":1,"config":"c","tools":[{"a":1,"a":2}]}`, "list": "[]"} {
		if err := os.WriteFile(filepath.Join(s.Dir, "s.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, known, err := s.Load("s", "c"); known || err == nil {
			t.Errorf("%s: %v, %v", name, known, err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "s.json"), []byte(`{"format":2,"config":"c"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, known, err := s.Load("s", "c"); known || err != nil {
		t.Errorf("another format: %v, %v", known, err)
	}
	large := gate.MustDoc(`{"name":"` + strings.Repeat("x", 16<<20) + `"}`)
	if err := s.Save("s", listings.Listing{Tools: []gate.Doc{large}}); err == nil {
		t.Error("a listing of more than 16 MiB was kept")
	}
}
