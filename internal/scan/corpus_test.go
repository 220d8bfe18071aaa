package scan_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/scan"
	"github.com/wasmgate/wasmgate/sanitize"
)

// A sample is a definition of the corpus. Poisoned ones have the names of their
// parameters for a schema.
type sample struct {
	Source      string          `json:"source"`
	Category    string          `json:"category"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Params      []string        `json:"params"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func samples(t testing.TB, name string) []sample {
	t.Helper()
	dir := os.Getenv("WASMGATE_CORPUS")
	if dir == "" {
		t.Skip("WASMGATE_CORPUS is not set: it names the folder of the test corpora")
	}
	b, err := os.ReadFile(filepath.Join(dir, "corpora", "tools", name))
	if err != nil {
		t.Fatal(err)
	}
	var all []sample
	for line := range strings.Lines(string(b)) {
		var s sample
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// definition is the MCP tool that a sample stands for.
func (s sample) definition() []byte {
	if s.InputSchema == nil {
		properties := make(map[string]any)
		for _, p := range s.Params {
			properties[p] = map[string]string{"type": "string"}
		}
		s.InputSchema, _ = json.Marshal(map[string]any{"type": "object", "properties": properties})
	}
	b, _ := json.Marshal(map[string]any{"name": s.Name, "description": s.Description, "inputSchema": s.InputSchema})
	return b
}

// tuned reports whether the rules may have been made with a look at the sample:
// at half of them, by hash. The other half was not looked at.
func (s sample) tuned() bool {
	return sha256.Sum256([]byte(s.Name + "\n" + s.Description))[0]%2 == 0
}

// scanner is the one of the command.
func scanner(t *testing.T) *scan.Scanner {
	t.Helper()
	clean, err := sanitize.New(sanitize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return scan.New(scan.Options{Sanitize: func(text string) (string, []string) {
		out, found := clean.Sanitize(text)
		var rules []string
		for _, f := range found {
			if f.Removed {
				rules = append(rules, f.Rule)
			}
		}
		return out, rules
	}})
}

// highest is the highest severity of what is found in a definition.
func highest(t *testing.T, s *scan.Scanner, definition []byte) (most scan.Severity, found []scan.Finding) {
	t.Helper()
	found, err := s.Tool(definition)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		most = max(most, f.Severity)
	}
	return most, found
}

// A tally counts definitions by the highest severity of their findings.
type tally struct {
	all  int
	from [4]int // with a finding of at least this severity
}

func (y *tally) add(most scan.Severity) {
	y.all++
	for s := scan.Low; s <= most; s++ {
		y.from[s]++
	}
}

func (y tally) row(name string) string {
	cell := func(s scan.Severity) string {
		return fmt.Sprintf("%d (%.1f %%)", y.from[s], 100*float64(y.from[s])/float64(y.all))
	}
	return fmt.Sprintf("| %s | %d | %s | %s | %s |\n", name, y.all, cell(scan.High), cell(scan.Medium), cell(scan.Low))
}

// The table of docs/internals/measurements.md. Only the false alarms have a bound: recall is
// what it is.
func TestCorpus(t *testing.T) {
	s := scanner(t)
	var benign tally
	harmless, servers := samples(t, "benign.jsonl"), make(map[string]bool)
	for _, d := range harmless {
		servers[d.Source] = true
		most, found := highest(t, s, d.definition())
		if benign.add(most); most >= scan.Medium {
			for _, f := range found {
				t.Logf("benign %s: %s %s: %s", d.Name, f.Rule, f.At, f.Excerpt)
			}
		}
	}
	var seen, unseen tally
	categories := make(map[string]*tally)
	for _, d := range samples(t, "poisoned.jsonl") {
		most, _ := highest(t, s, d.definition())
		half := &unseen
		if d.tuned() {
			half = &seen
		}
		half.add(most)
		category := strings.ToLower(d.Category)
		if i := strings.IndexByte(d.Category, '_'); i > 0 && strings.ToUpper(d.Category) == d.Category {
			category = "of another scanner's tests"
		}
		if categories[category] == nil {
			categories[category] = new(tally)
		}
		categories[category].add(most)
	}
	if benign.all < 700 || seen.all < 90 || unseen.all < 90 {
		t.Fatalf("%d harmless, %d and %d poisoned definitions: the corpus is not whole", benign.all, seen.all, unseen.all)
	}
	if 100*benign.from[scan.High] > benign.all {
		t.Errorf("%d of %d harmless definitions have findings of severity high, more than 1 %%", benign.from[scan.High], benign.all)
	}
	var b strings.Builder
	b.WriteString("| definitions | number | found at high | at medium or above | at all |\n| --- | --- | --- | --- | --- |\n")
	b.WriteString(benign.row(fmt.Sprintf("harmless, of %d servers", len(servers))))
	b.WriteString(seen.row("poisoned, the half that the rules were made with"))
	b.WriteString(unseen.row("poisoned, the other half"))
	for _, name := range slices.Sorted(maps.Keys(categories)) {
		b.WriteString(categories[name].row("poisoned: " + name))
	}
	t.Log("\n" + b.String())
	if path := os.Getenv("WASMGATE_SCAN_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkListing scans definitions of real servers as a listing does, which leaves sanitizing
// to others.
func BenchmarkListing(b *testing.B) {
	var definitions [][]byte
	for _, d := range samples(b, "benign.jsonl") {
		definitions = append(definitions, d.definition())
	}
	s, i := scan.New(scan.Options{}), 0
	for b.Loop() {
		if _, err := s.Tool(definitions[i%len(definitions)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
