package lock_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// A rig is pins with what they record.
type rig struct {
	*lock.Pins
	options lock.Options

	mu     sync.Mutex
	events []string // code and name
	full   bool     // there is no room for events
}

func newRig(t testing.TB, mode options.PinMode) *rig {
	t.Helper()
	dir := t.TempDir()
	return rigOn(t, lock.Options{Pins: options.Pins{Mode: mode, File: filepath.Join(dir, lock.FileName), Dir: filepath.Join(dir, "state", "pins")}})
}

func rigOn(t testing.TB, o lock.Options) *rig {
	t.Helper()
	r := &rig{}
	o.Record = func(e lock.Event) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.full {
			return errors.New("no room")
		}
		r.events = append(r.events, e.Code+" "+e.Key.String())
		return nil
	}
	r.options = o
	var err error
	if r.Pins, err = lock.New(o); err != nil {
		t.Fatal(err)
	}
	return r
}

// again returns the pins of another process on the same files.
func (r *rig) again(t testing.TB) *rig { return rigOn(t, r.options) }

// took returns the events since it was called last.
func (r *rig) took() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

func (r *rig) connected(server string, items ...lock.Item) {
	r.Observe(lock.Listing{Server: server, Items: items})
}

func (r *rig) announced(server string, items ...lock.Item) {
	r.Observe(lock.Listing{Server: server, Items: items, Announced: time.Now()})
}

func (r *rig) approve(t testing.TB, selector string) []lock.Pin {
	t.Helper()
	review, err := r.Review(selector, nil)
	if err != nil {
		t.Fatal(err)
	}
	added, err := lock.Approve(r.options.File, review.Approval)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Reload("local"); err != nil {
		t.Fatal(err)
	}
	return added
}

// differ returns the differences of all servers.
func (r *rig) differ(t testing.TB) []lock.Difference {
	t.Helper()
	review, err := r.Review("", nil)
	if err != nil {
		t.Fatal(err)
	}
	return review.Differences
}

// callable returns which of the items' tools pass.
func (r *rig) callable(server string, items ...lock.Item) (names []string) {
	for _, i := range items {
		if i.Kind == lock.Tool && r.Check(tool(server, i.Doc)) == nil {
			names = append(names, i.Name)
		}
	}
	return names
}

func tool(server string, def gate.Doc) *gate.Tool {
	name := def.Get("name").Text()
	return &gate.Tool{Name: gate.ToolName{Server: server, Tool: name}, Local: name, Digest: def.Digest(), Definition: def}
}

func item(def string) lock.Item { return itemOf(gate.MustDoc(def)) }

func itemOf(def gate.Doc) lock.Item {
	return lock.Item{Kind: lock.Tool, Name: def.Get("name").Text(), Doc: def}
}

// named returns a tool with a description.
func named(name, description string) lock.Item {
	return item(fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, description))
}

func program(command string) lock.Item {
	return lock.Item{Kind: lock.Identity, Doc: gate.MustDoc(fmt.Sprintf(`{"command":%q,"args":[]}`, command))}
}

func want(t testing.TB, what string, got []string, names ...string) {
	t.Helper()
	if !slices.Equal(got, names) {
		t.Errorf("%s: %v, want %v", what, got, names)
	}
}

// corpus returns the tool definitions of a file of the corpora, each under a name
// that no other has; own ones if the corpora are not here.
func corpus(t testing.TB, name string) (defs []gate.Doc) {
	t.Helper()
	var b []byte
	if root := os.Getenv("WASMGATE_CORPUS"); root != "" {
		var err error
		if b, err = os.ReadFile(filepath.Join(root, "corpora", "tools", name)); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Log("WASMGATE_CORPUS is not set: own definitions are used")
		b = own()
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		var tool map[string]any
		if err := json.Unmarshal(s.Bytes(), &tool); err != nil {
			t.Fatal(err)
		}
		tool["name"] = fmt.Sprintf("%v-%d", tool["name"], len(defs))
		if tool["inputSchema"] == nil {
			tool["inputSchema"] = map[string]any{"type": "object"}
		}
		line, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		def, err := gate.ParseDoc(line)
		if err != nil {
			t.Fatal(err)
		}
		defs = append(defs, def)
	}
	if len(defs) < 20 {
		t.Fatalf("%d definitions in %s", len(defs), name)
	}
	return defs
}

// own returns definitions with everything that one can have.
func own() []byte {
	var b bytes.Buffer
	for i := range 30 {
		fmt.Fprintf(&b, `{"name":"tool%d","title":"Tool","description":"Does %d things. Caf\u00e9.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"where"},"n":{"type":"integer","minimum":%d},"mode":{"enum":["a","b"]}},"required":["path"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}},"annotations":{"readOnlyHint":true,"title":"T"},"_meta":{"x":{"y":[1,2,null]}},"icons":[{"src":"https://example.com/i.png","sizes":["48x48"]}],"unknown":{"later":1.5}}`+"\n", i, i, i)
	}
	return b.Bytes()
}
