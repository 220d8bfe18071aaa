package lock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
)

func TestTrustFirst(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	a, b := named("a", "reads"), named("b", "writes")
	if r.Check(tool("s", a.Doc)) == nil {
		t.Error("a tool of a server that nobody has seen is callable")
	}
	r.connected("s", program("x"), a, b)
	want(t, "at first", r.callable("s", a, b), "a", "b")
	want(t, "recorded", r.took(), "first_seen s identity", "first_seen s__a", "first_seen s__b")

	changed, added := named("a", "reads everything"), named("c", "is new")
	r.connected("s", program("x"), changed, b, added)
	want(t, "later", r.callable("s", changed, b, added), "b")
	want(t, "recorded", r.took(), "quarantined s__a", "quarantined s__c")
	r.connected("s", program("x"), changed, b, added)
	want(t, "recorded twice", r.took())

	want(t, "after a restart", func() []string {
		again := r.again(t)
		again.connected("s", program("x"), changed, b, added)
		return again.callable("s", changed, b, added)
	}(), "b")

	if r.Check(tool("t", a.Doc)) == nil {
		t.Error("the definition is callable on another server")
	}
	renamed := tool("s", b.Doc)
	renamed.Local = "a"
	if r.Check(renamed) == nil {
		t.Error("one tool's definition is callable by the name of another")
	}
}

func TestServerThatIsAnotherIsQuarantinedWhole(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	a := named("a", "reads")
	r.connected("s", program("x"), a)
	r.took()
	r.connected("s", program("y"), a)
	want(t, "of another program", r.callable("s", a))
	want(t, "recorded", r.took(), "quarantined s identity")
	err := r.Check(tool("s", a.Doc))
	if u, ok := errors.AsType[*gate.Unpinned](err); !ok || !strings.Contains(u.Reason, "server has changed") || u.Remedy != "wasmgate pin diff s" {
		t.Errorf("err = %#v", err)
	}
	r.approve(t, "s")
	want(t, "after its approval", r.callable("s", a), "a")
}

// Instructions are pinned by themselves: tools do not hang on them.
func TestInstructions(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	a := named("a", "reads")
	say := func(s string) lock.Item {
		return lock.Item{Kind: lock.Instructions, Doc: gate.MustDoc(fmt.Sprintf("%q", s))}
	}
	r.connected("s", program("x"), say("be kind"), a)
	r.took()
	r.connected("s", program("x"), say("be cruel"), a)
	want(t, "recorded", r.took(), "quarantined s instructions")
	want(t, "callable", r.callable("s", a), "a")
}

func TestStrict(t *testing.T) {
	r := newRig(t, options.PinStrict)
	a, b := named("a", "reads"), named("b", "writes")
	r.connected("s", program("x"), a, b)
	want(t, "before approval", r.callable("s", a, b))
	if _, err := os.Stat(r.options.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("strict keeps what it saw first")
	}
	added := r.approve(t, "s__a")
	if len(added) != 2 || added[0].Kind != lock.Identity || added[1].Name != "a" {
		t.Errorf("approved %v", added)
	}
	want(t, "after it", r.callable("s", a, b), "a")
	want(t, "recorded", r.took(), "quarantined s identity", "quarantined s__a", "quarantined s__b", "approved s identity", "approved s__a")
}

// What the gateway brings along needs no approval, and only that.
func TestOwn(t *testing.T) {
	r := newRig(t, options.PinStrict)
	a, b := named("a", "reads"), named("b", "writes")
	a.Own = true
	r.connected("local", a, b)
	want(t, "callable", r.callable("local", a, b), "a")
	if !r.Pinned(tool("local", a.Doc)) || r.Pinned(tool("local", b.Doc)) {
		t.Error("own tools are not pinned, or others are")
	}
	if other := named("a", "reads all"); len(r.callable("local", other)) > 0 {
		t.Error("another tool of the name is callable")
	}
}

// The first approval of a server takes over what it was trusted for, and from then
// on the lockfile alone says what is approved.
func TestApprovalOfOneTool(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	a, b := named("a", "reads"), named("b", "writes")
	r.connected("s", program("x"), a, b)
	if r.Pinned(tool("s", b.Doc)) {
		t.Error("what is trusted counts as approved by a person")
	}
	changed := named("a", "reads more")
	r.connected("s", program("x"), changed, b)
	r.took()
	if added := r.approve(t, "s__a"); len(added) != 3 {
		t.Errorf("approved %v", added)
	}
	want(t, "callable", r.callable("s", a, changed, b), "a", "b")
	if r.Check(tool("s", a.Doc)) == nil {
		t.Error("the old definition is callable, and the lockfile does not have it")
	}
	if !r.Pinned(tool("s", changed.Doc)) || !r.Pinned(tool("s", b.Doc)) {
		t.Error("what the lockfile has does not count as approved by a person")
	}
	want(t, "recorded", r.took(), "approved s identity", "approved s__a", "approved s__b")

	// Without the lockfile, what was trusted first counts again.
	if err := os.Remove(r.options.File); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(""); err != nil {
		t.Fatal(err)
	}
	want(t, "without the lockfile", r.callable("s", changed, b), "b")
}

func TestBrokenLockfileChangesNothing(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	a := named("a", "reads")
	r.connected("s", a)
	r.approve(t, "s")
	if err := os.WriteFile(r.options.File, []byte("wasmgate-lock 1\n<<<<<<< ours\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(""); err == nil || !strings.Contains(err.Error(), "merge conflict") {
		t.Errorf("err = %v", err)
	}
	want(t, "callable", r.callable("s", a), "a")
	if _, err := lock.New(r.options); err == nil {
		t.Error("pins start on a lockfile that cannot be read")
	}
}

// A server may add tools for a while after it was first seen, and change none.
func TestFirstTrustCloses(t *testing.T) {
	for name, tt := range map[string]struct {
		after   []time.Duration // between announcements
		trusted int             // of the tools that they added
	}{
		"within the window":           {[]time.Duration{time.Second}, 1},
		"after the window":            {[]time.Duration{2100 * time.Millisecond}, 0},
		"announcements keep it open":  {[]time.Duration{1900 * time.Millisecond, 1900 * time.Millisecond, 1900 * time.Millisecond}, 3},
		"not for more than ten":       {slices.Repeat([]time.Duration{1900 * time.Millisecond}, 9), 5},
		"what is late stays out":      {[]time.Duration{time.Second, 3 * time.Second, time.Second}, 1},
		"an hour later nothing opens": {[]time.Duration{time.Hour, time.Second}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, options.PinTrustFirst)
				items := []lock.Item{named("first", "reads")}
				r.connected("s", items...)
				for i, d := range tt.after {
					time.Sleep(d)
					items = append(items, named(fmt.Sprintf("t%d", i), "late"))
					r.announced("s", items...)
				}
				got := r.callable("s", items...)
				if len(got) != 1+tt.trusted {
					t.Errorf("callable: %v, want the first and %d", got, tt.trusted)
				}
			})
		})
	}
}

func TestFirstTrustIsOfTheFirstDefinitionAndConnection(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	a, late := named("a", "reads"), named("late", "x")
	r.connected("s", a)
	r.announced("s", named("a", "reads more"))
	want(t, "changed within the window", r.callable("s", named("a", "reads more")))
	r.connected("s", a, late)
	want(t, "new on another connection", r.callable("s", a, late), "a")
	r.announced("s", a, late)
	want(t, "announced on another connection", r.callable("s", a, late), "a")
}

// What cannot be kept is not trusted, and says so; what a person has approved does
// not hang on it.
func TestStateThatCannotBeWritten(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	a, b := named("a", "reads"), named("b", "reads")
	if _, err := lock.Approve(r.options.File, []lock.Pin{{Key: lock.Key{Server: "ok", Kind: lock.Tool, Name: "b"}, Digest: b.Doc.Digest()}}); err != nil {
		t.Fatal(err)
	}
	r = r.again(t)
	if err := os.WriteFile(filepath.Dir(r.options.Dir), nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	r.connected("s", a)
	r.connected("ok", b)
	want(t, "not kept", r.callable("s", a))
	want(t, "approved", r.callable("ok", b), "b")
	if err := r.Faulted("s"); err == nil || !strings.Contains(err.Error(), "first trust of server s cannot be kept") {
		t.Errorf("fault = %v", err)
	}
	if err := r.Check(tool("s", a.Doc)); err == nil || !strings.Contains(err.Error(), "cannot be kept") {
		t.Errorf("err = %v", err)
	}
}

func TestStateThatCannotBeRead(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	a := named("a", "reads")
	r.connected("s", a)
	path := filepath.Join(r.options.Dir, "s.json")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	for name, text := range map[string]string{"torn": "{", "another's": `{"format":1,"server":"t"}`, "of later": `{"format":2,"server":"s"}`, "empty": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		again := r.again(t)
		again.connected("s", a)
		want(t, name, again.callable("s", a))
		if b, _ := os.ReadFile(path); string(b) != text {
			t.Errorf("%s: the file was replaced by %s", name, b)
		}
	}
}

// What cannot be recorded is not trusted and not approved.
func TestNoRecordNoTrust(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	r.full = true
	a := named("a", "reads")
	r.connected("s", a)
	want(t, "not recorded", r.callable("s", a))

	r = newRig(t, options.PinStrict)
	r.connected("s", a)
	r.full = true
	review, err := r.Review("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Approve(r.options.File, review.Approval); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload("local"); err == nil {
		t.Error("an approval without a record")
	}
	want(t, "approved without a record", r.callable("s", a))
}

// Of gateways that see a server first at the same time, one decides what it is
// trusted for, and the others go by it.
func TestFirstTrustAtOnce(t *testing.T) {
	first := newRig(t, options.PinTrustFirst)
	const gateways = 16
	rigs := make([]*rig, gateways)
	items := make([]lock.Item, gateways)
	var wg sync.WaitGroup
	for i := range rigs {
		rigs[i], items[i] = first.again(t), named("a", fmt.Sprint("version ", i))
		wg.Go(func() { rigs[i].connected("s", items[i]) })
	}
	wg.Wait()
	winners := 0
	for i, r := range rigs {
		winners += len(r.callable("s", items[i]))
	}
	if winners != 1 {
		t.Errorf("%d definitions of one tool are trusted", winners)
	}
	for _, r := range rigs {
		r.connected("s", items...)
		if got := r.callable("s", items...); len(got) != 1 {
			t.Errorf("one gateway trusts %d of them", len(got))
		}
	}
}

func TestEntriesAndSelect(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	r.connected("s", program("x"), named("a", "1"), named("b", "1"), named("gone", "1"))
	r.connected("t", named("a", "1"))
	r.connected("s", program("x"), named("a", "2"), named("b", "1"), named("c", "1"))
	var got []string
	for _, e := range r.Entries() {
		got = append(got, e.Label+": "+string(e.State))
	}
	want(t, "entries", got, "s identity: trusted", "s__a: quarantined changed", "s__b: trusted", "s__c: quarantined new", "s__gone: gone", "t__a: trusted")
	for selector, n := range map[string]int{"": 6, "s": 5, "s__a": 1, "s identity": 1, "t": 1} {
		if some, err := lock.Select(r.Entries(), selector); err != nil || len(some) != n {
			t.Errorf("select %q: %d, %v; want %d", selector, len(some), err, n)
		}
	}
	for _, selector := range []string{"a", "u", "s__", "s__a*"} {
		if _, err := lock.Select(r.Entries(), selector); !errors.Is(err, lock.ErrNothing) {
			t.Errorf("select %q: %v", selector, err)
		}
	}
}

// TestHammer reads while servers are observed and the lockfile changes.
func TestHammer(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	good, bad := named("a", "good"), named("a", "bad")
	r.connected("s", good)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 50 {
				switch i {
				case 0:
					r.connected("s", []lock.Item{good, bad}[n%2])
				case 1:
					_ = r.Reload("")
				default:
					if r.Check(tool("s", bad.Doc)) == nil {
						t.Error("what is not approved is callable")
					}
					r.Entries()
				}
			}
		})
	}
	wg.Wait()
	want(t, "at the end", r.callable("s", good), "a")
}

// BenchmarkCheck measures what pins add to a call.
func BenchmarkCheck(b *testing.B) {
	r := newRig(b, options.PinTrustFirst)
	var items []lock.Item
	for i := range 100 {
		items = append(items, named(fmt.Sprint("t", i), "x"))
	}
	r.connected("s", append(items, program("x"))...)
	one := tool("s", items[50].Doc)
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Check(one); err != nil {
			b.Fatal(err)
		}
	}
}

// TestChange: what servers have declared is held against another mode and lockfile as if it
// came now, and a lockfile that cannot be read changes nothing.
func TestChange(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	o := r.options
	a, b := named("a", "reads"), named("b", "writes")
	r.connected("s", program("x"), a)
	r.connected("s", program("x"), a, b)
	r.took()
	change := func(mode options.PinMode, file string) {
		t.Helper()
		if changed, err := r.Change(mode, file); err != nil || !changed {
			t.Fatalf("%s, %s: %v, %v", mode, file, changed, err)
		}
	}
	change(options.PinOff, o.File)
	want(t, "off", r.callable("s", a, b), "a", "b")
	if !r.Off() || r.Pinned(tool("s", a.Doc)) {
		t.Error("something is pinned while pins are off")
	}
	want(t, "recorded", r.took())
	change(options.PinTrustFirst, o.File)
	want(t, "as before", r.callable("s", a, b), "a")
	want(t, "recorded", r.took(), "quarantined s__b")
	change(options.PinStrict, o.File)
	want(t, "strict", r.callable("s", a, b))
	r.approve(t, "s__b")
	want(t, "approved", r.callable("s", a, b), "b")

	bad := filepath.Join(t.TempDir(), "bad.lock")
	if err := os.WriteFile(bad, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := r.Change(options.PinTrustFirst, bad); err == nil || changed {
		t.Errorf("a lockfile that cannot be read: %v, %v", changed, err)
	}
	want(t, "as before", r.callable("s", a, b), "b")
	change(options.PinStrict, filepath.Join(t.TempDir(), "none.lock"))
	want(t, "by another lockfile", r.callable("s", a, b))
	if changed, err := r.Change(options.PinStrict, bad); err == nil || changed {
		t.Errorf("a lockfile that cannot be read: %v, %v", changed, err)
	}
}
