package except

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// A Finding is what a rule has found at one place of calls of one tool.
type Finding struct {
	ID          string `json:"id"` // of rule, tool and place
	Rule        string `json:"rule"`
	Tool        string `json:"tool"`
	Server      string `json:"server"`
	At          string `json:"at"` // the place: a finding's, with * for each number in it
	Calls       int    `json:"calls"`
	Found       int    `json:"found"`                 // in all of them
	Removed     int    `json:"removed"`               // so many of these were neutralized
	Last        string `json:"last"`                  // the newest of the calls
	Fingerprint string `json:"fingerprint,omitempty"` // of the secret in it
}

// MostCalls is of how many calls findings are counted, the newest that have any.
const MostCalls = 1000

var numbers = regexp.MustCompile(`/[0-9]+`)

// Count counts what was found in calls, the newest first. The most frequent findings come first.
func Count(calls []audit.Entry) []Finding {
	found := make(map[string]*Finding)
	for _, e := range calls {
		seen := make(map[string]bool)
		for _, f := range e.Findings {
			at := numbers.ReplaceAllString(f.At, "/*")
			id := idOf(f.Rule, e.Tool, at)
			one := found[id]
			if one == nil {
				one = &Finding{ID: id, Rule: f.Rule, Tool: e.Tool, Server: e.Server, At: at, Last: e.ID, Fingerprint: f.Fingerprint}
				found[id] = one
			}
			if !seen[id] {
				seen[id] = true
				one.Calls++
			}
			n := max(1, f.Count)
			if one.Found += n; f.Removed {
				one.Removed += n
			}
		}
	}
	list := []Finding{}
	for _, one := range found {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(b.Calls-a.Calls, strings.Compare(a.Rule, b.Rule), strings.Compare(a.Tool, b.Tool), strings.Compare(a.At, b.At))
	})
	return list
}

// idOf is short enough to be typed, and too long for two of one log to meet.
func idOf(names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// List counts what was found in the calls of the log at path that f chooses.
func List(ctx context.Context, path string, f audit.Filter) ([]Finding, error) {
	f.Last, f.Choose = MostCalls, func(e *audit.Entry) bool { return e.Event == gate.Done && len(e.Findings) > 0 }
	var calls []audit.Entry
	for e, err := range audit.Read(ctx, path, f) {
		switch {
		case errors.As(err, new(*audit.ChainError)): // damage, which verify reports
		case errors.Is(err, fs.ErrNotExist):
			return Count(nil), nil
		case err != nil:
			return nil, err
		default:
			calls = append(calls, e)
		}
	}
	slices.Reverse(calls)
	return Count(calls), nil
}

// Of is what an exception can be made from.
func (f Finding) Of() Found {
	return Found{Rule: f.Rule, Tool: f.Tool, Server: f.Server, Arguments: InArguments(f.At), Fingerprint: f.Fingerprint}
}

// InArguments reports whether a place is in what a tool was called with.
func InArguments(at string) bool { return strings.HasPrefix(at, "arguments:") }
