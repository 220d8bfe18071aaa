package policydata_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// grantLines are entries in all ways in which people write them.
func grantLines(n int) (text string, want []policydata.Grant) {
	var b strings.Builder
	b.WriteString("---\n# who may do what\n")
	for i := range n {
		id, tool := fmt.Sprintf("user%d", i%5000), fmt.Sprintf("srv%d__tool%d", i%50, i)
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, "- {to: [%s], tools: [%q]} # one line\n", id, tool)
		case 1:
			fmt.Fprintf(&b, "- to: [%s]\n  tools:\n    - %s\n", id, tool)
		case 2:
			fmt.Fprintf(&b, "\n# a comment\n-\n  to:\n  - %s\n  tools: [%s]\n", id, tool)
		default:
			fmt.Fprintf(&b, "- {to: [%s],\n   tools: [\n   %s]}\n", id, tool)
		}
		want = append(want, policydata.Grant{To: []string{id}, Tools: []string{tool}})
	}
	return b.String(), want
}

// TestManyGrants: a file of fifty thousand grants is read, edited, and wrong by its line
// like one of five.
func TestManyGrants(t *testing.T) {
	unraced.Long(t)
	path := filepath.Join(t.TempDir(), "grants.yaml")
	for _, n := range []int{5, 5000, 50_000} {
		if n > 5000 && testing.Short() {
			continue
		}
		text, want := grantLines(n)
		write(t, path, text)
		if got, err := policydata.ReadGrants(path); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%d grants: read %d, %v", n, len(got), err)
		}
		if added, err := policydata.AddGrant(t.Context(), policydata.GrantsFile(path), policydata.Grant{To: []string{"local"}, Servers: []string{"files"}}); err != nil || !added {
			t.Fatalf("%d grants: added %v, %v", n, added, err)
		}
		if r, err := policydata.RevokeGrant(t.Context(), policydata.GrantsFile(path), want[n/2].Tools[0]); err != nil || r.Removed != 1 {
			t.Fatalf("%d grants: revoked %+v, %v", n, r, err)
		}
		if n > 5000 {
			continue // each costs as much as a read
		}
		for what, wrong := range map[string]struct{ text, want string }{
			"an entry":         {text + "- {to: [a], toolz: [b__c]}\n", fmt.Sprintf(":%d: [%d].toolz: unknown key", strings.Count(text, "\n")+1, n)},
			"syntax":           {text + "- {to: [a], tools: [b__c}\n", fmt.Sprintf(":%d: ", strings.Count(text, "\n")+1)},
			"another document": {text + "---\n- {to: [a], tools: [b__c]}\n", "more than one document"},
			"a key twice":      {text + "- {to: [a], to: [b], tools: [b__c]}\n", fmt.Sprintf(":%d: [%d].to: given twice", strings.Count(text, "\n")+1, n)},
			"no list":          {text + "to: [a]\n", ":"},
		} {
			write(t, path, wrong.text)
			if _, err := policydata.ReadGrants(path); err == nil || !strings.Contains(err.Error(), wrong.want) {
				t.Errorf("%d grants, %s: %v, want %q", n, what, err, wrong.want)
			}
		}
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("# x\n", 9<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := policydata.ReadGrants(path); err == nil || !strings.Contains(err.Error(), "larger than 32 MiB") {
		t.Errorf("a file of 36 MiB: %v", err)
	}
}

// BenchmarkReadGrants measures how long a file of grants takes to read.
func BenchmarkReadGrants(b *testing.B) {
	for _, n := range []int{1000, 5000, 50_000} {
		text, _ := grantLines(n)
		path := filepath.Join(b.TempDir(), "grants.yaml")
		write(b, path, text)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := policydata.ReadGrants(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
