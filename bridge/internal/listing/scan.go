package listing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/scan"
)

// scanTime bounds how long the definitions of one listing are scanned: the scan is advice, and
// clients must not wait for a server whose listing is slow to scan. Ten thousand tools of usual
// size take less than half of it.
const scanTime = 2 * time.Second

// scanner leaves to [offer] what is hidden in texts.
var scanner = scan.New(scan.Options{})

// scan adds to the findings of a tool the rules that its definition, as declared,
// is found by, and tells of those that a person should look at. After until, it
// says that it did not look.
func (s *Tools) scan(t *gate.Tool, def gate.Doc, until time.Time) {
	rules := changedBy(t.Findings)
	if time.Now().After(until) {
		t.Findings = append(t.Findings, append(rules, scan.RuleUnread)...)
		return
	}
	found, err := scanner.Tool(def.Raw())
	if err != nil {
		t.Findings = append(t.Findings, append(rules, scan.RuleUnread)...)
		return
	}
	for _, f := range found {
		if !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
			if f.Severity == scan.High {
				s.Notes = append(s.Notes, status.Note{Tool: mcp.QuoteName(t.Local), Text: fmt.Sprintf("scan: %s at %s", f.Rule, mcp.QuoteName(f.At))})
			}
		}
	}
	t.Findings = append(t.Findings, rules...)
}

// changedBy returns the rules by which texts of a definition were changed.
func changedBy(findings []string) (rules []string) {
	for _, f := range findings {
		if at, rule, ok := strings.Cut(f, ": "); ok && strings.HasPrefix(at, "/") && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return rules
}
