package flow_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/audit/flow"
)

// A flow is of one session alone, and begins with what raised its labels, also if the process
// that keeps the session has begun after that.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, audit.Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	dirty := gate.NewLabels(provenance.Untrusted)
	for _, e := range []audit.Entry{
		{ID: "before", LabelsBefore: dirty, LabelsAfter: dirty}, // a reset ago
		{ID: "raised", LabelsAfter: dirty},
		{ID: "other", Session: "t", LabelsAfter: dirty},
		{ID: "theirs", Tenant: "corp", LabelsAfter: dirty},
		{ID: "brought", LabelsBefore: dirty, LabelsAfter: dirty},
		{ID: "account", Code: "ok", LabelsBefore: dirty, LabelsAfter: dirty, OwnRecord: true},
		{ID: "send", Code: "refused_policy", LabelsBefore: dirty, LabelsAfter: dirty, Met: []string{"/to: untrusted, at /from of mail__find in call brought"}},
		{ID: "listed", Code: "ok", LabelsBefore: dirty, LabelsAfter: dirty, Approval: audit.Approval{ID: "n-abc.2"}},
	} {
		e.Event, e.Principal, e.Tool = gate.Done, "ann", "mail__"+e.ID
		if e.Session == "" {
			e.Session = "s"
		}
		if err := log.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	of := gate.SessionKey{Owner: gate.Owner{ID: "ann"}, ID: "s"}
	f, err := flow.Read(t.Context(), path, of, time.Now().Add(time.Hour), map[string]string{provenance.Untrusted: "raised"})
	if err != nil {
		t.Fatal(err)
	}
	ids := func(calls []flow.Call) (all []string) {
		for _, c := range calls {
			all = append(all, c.Call)
		}
		return all
	}
	if !slices.Equal(ids(f.Read), []string{"raised", "brought", "account"}) || f.Read[1].Own || !f.Read[2].Own || !slices.Equal(ids(f.Did), []string{"send", "listed"}) || f.Did[0].Set != "" || f.Did[1].Set != "n-abc" {
		t.Fatalf("read %v, did %v", ids(f.Read), ids(f.Did))
	}
	if v := f.Did[0].Values; len(v) != 1 || v[0].Argument != "/to" || v[0].Call != "brought" {
		t.Errorf("the call that was refused has the values %v", v)
	}
	if f, err := flow.Read(t.Context(), path+".none", of, time.Time{}, nil); err != nil || len(f.Read)+len(f.Did) != 0 {
		t.Errorf("of no log: %v, %v", f, err)
	}
}
