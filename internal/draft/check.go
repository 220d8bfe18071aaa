package draft

import (
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/structure"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// Check returns what recorded calls of a tool contradict in its label: that of a labels file, or the
// draft if the file has none.
func (d *Draft) Check(name string, labels []policy.Label, calls []study.RecordedCall) []provenance.Contradiction {
	label, length := d.Label(name), -1
	for _, l := range labels { // a name comes before a pattern, and the longest pattern wins
		if whole := l.Pattern == name; whole || len(l.Pattern) > length && match.Pattern(l.Pattern).Matches(name) {
			label, length = l, len(l.Pattern)
			if whole {
				break
			}
		}
	}
	var all []provenance.Saying
	for _, c := range calls {
		all = append(all, provenance.Saying{Tool: name, Said: label.ToolLabels, Args: c.Args, Result: c.Result, Structure: structure.Of})
	}
	return provenance.CheckLabel(all)
}
