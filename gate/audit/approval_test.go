package audit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// What is said of an approval is one object, in which a person's words are escaped.
func TestApprovalIsRecorded(t *testing.T) {
	expires := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	for name, tt := range map[string]struct {
		approval gate.ApprovalRecord
		want     string
	}{
		"none": {gate.ApprovalRecord{}, ""},
		"a denial": {
			gate.ApprovalRecord{Approval: gate.Approval{ID: "n-1", By: "cli:local"}, State: approval.StateDenied, Binding: "ab", Note: "not\x1b[1m \u202e", Expires: expires},
			`{"id":"n-1","state":"denied","binding":"ab","by":"cli:local","note":"not\u001b[1m \u202e","expires":"2026-01-02T02:04:05Z"}`,
		},
		"one by which a call passed": {gate.ApprovalRecord{Approval: gate.Approval{ID: "n-1", By: "client"}, Binding: "ab"}, `{"id":"n-1","binding":"ab","by":"client"}`},
		"one that is waited for":     {gate.ApprovalRecord{Approval: gate.Approval{ID: "n-1"}}, `{"id":"n-1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l := mustOpen(t, path, audit.Options{Node: "n"})
			r := done("c1")
			r.Event, r.Approval = gate.EventApproval, tt.approval
			if err := l.Record(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(b)), "\n")
			var line struct {
				Event    string
				Approval json.RawMessage
			}
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(line.Approval)); diff != "" || line.Event != "approval" {
				t.Errorf("event %q: %s", line.Event, diff)
			}
			verified(t, path)
		})
	}
}
