package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/pointer"
	"github.com/wasmgate/wasmgate/internal/scan"
)

// A Difference is what is to be looked at before a definition is approved.
type Difference struct {
	Entry
	// Known says that the definition that was approved is known. If only digests of it
	// are, as of a lockfile that comes from another machine, Changes show what the parts
	// are now that differ, and Unchanged names those that do not.
	Known     bool       `json:"known"`
	Changes   []Reviewed `json:"changes"`
	Unchanged []string   `json:"unchanged,omitempty"`
	// Means describes the changes of schemas in terms of calls and results.
	Means []string `json:"means,omitempty"`
	// Findings are those of the scan in what has not changed.
	Findings []scan.Finding `json:"findings,omitempty"`
}

// Reviewed is a change with what a scan finds in it.
type Reviewed struct {
	Change
	Findings []scan.Finding `json:"findings,omitempty"`
}

// A Review is what is to be looked at before an approval, and the digests that the approval
// adds to the lockfile. Both are of one moment.
type Review struct {
	Differences []Difference `json:"differences"`
	Approval    []Pin        `json:"approval"`
}

// A Look returns what a scan finds in what a server declares.
type Look func(k Key, declared gate.Doc) []scan.Finding

// Review returns what the things that a selector names differ in from what was approved of
// the same name, and what their approval adds. Look may be nil.
func (p *Pins) Review(selector string, look Look) (Review, error) {
	v := p.view.Load()
	some, err := Select(v.entries(), selector)
	return Review{p.differences(v, some, look), slices.Concat([]Pin{}, v.approval(some))}, err
}

// differences compares what is quarantined, or gone, of the given entries with what was
// approved.
func (p *Pins) differences(v *view, some []Entry, look Look) []Difference {
	all := []Difference{}
	for _, e := range some {
		if !e.State.Quarantined() && e.State != StateGone {
			continue
		}
		d := Difference{Entry: e}
		s := v.servers[e.Server]
		now := s.items[e.Key]
		old := p.approved(v, s, e.Key)
		if d.Known = !old.IsZero() || e.State == StateNew; e.State != StateGone {
			d.compare(old, now, v.file.of(e.Key))
		}
		if look != nil && !now.Doc.IsZero() {
			d.review(look(e.Key, now.Doc))
		}
		all = append(all, d)
	}
	return all
}

// compare fills in how a thing differs from the version that was approved, or, if that is
// not known, from the approved digests that are the most like it.
func (d *Difference) compare(old gate.Doc, now declared, approved []Pin) {
	changes, means := Compare(d.Kind, old, now.Doc)
	var same map[string]string
	var nearest Parts
	if old.IsZero() {
		for _, a := range approved {
			if parts := a.Parts.common(now.pin.Parts); len(parts) > len(same) {
				same, nearest = parts, a.Parts
			}
		}
	}
	was := nearest.split()
	for _, c := range changes {
		part := strings.TrimPrefix(c.Pointer, "/")
		if same[part] != "" {
			continue
		}
		if was[part] != "" {
			c.Old = shortened(was[part])
		}
		d.Changes = append(d.Changes, Reviewed{Change: c})
	}
	for _, part := range slices.Sorted(maps.Keys(was)) {
		if now.Doc.Get(part).IsZero() {
			d.Changes = append(d.Changes, Reviewed{Change: Change{Pointer: "/" + pointer.Escape(part), Old: shortened(was[part])}})
		}
	}
	d.Unchanged, d.Means = slices.Sorted(maps.Keys(same)), means
}

// shortened shows a part when only the beginning of its digest is known.
func shortened(digest string) string { return hash + digest + "…" }

// review attaches findings to the changes that they are in.
func (d *Difference) review(found []scan.Finding) {
	for _, f := range found {
		i := slices.IndexFunc(d.Changes, func(c Reviewed) bool { return c.holds(Visible(f.At)) })
		if i < 0 {
			d.Findings = append(d.Findings, f)
		} else {
			d.Changes[i].Findings = append(d.Changes[i].Findings, f)
		}
	}
}

// holds reports whether a place is in what has changed, or around it.
func (c Change) holds(at string) bool {
	return strings.HasPrefix(at+"/", c.Pointer+"/") || strings.HasPrefix(c.Pointer+"/", at+"/")
}

// approved returns the definition of a thing that was approved, or an absent one
// if none was, or is known.
func (p *Pins) approved(v *view, s *server, k Key) gate.Doc {
	if !v.file.Rules(k.Server) {
		return p.store.find(s.trusted[k].Digest)
	}
	for _, pin := range v.file.of(k) {
		if d := p.store.find(pin.Digest); !d.IsZero() {
			return d
		}
	}
	return gate.Doc{}
}

// maxChanges bounds how many fields of a definition are shown one by one.
const maxChanges = 500

// Compare returns field by field how two definitions of a kind differ, and what the changes
// mean. An absent old definition has no fields. There are changes exactly if the digests
// differ.
func Compare(k Kind, old, now gate.Doc) (changes []Change, means []string) {
	changes = fields(old, now)
	if k == Page {
		slices.SortStableFunc(changes, htmlLast)
	}
	if len(changes) > maxChanges {
		rest := len(changes) - maxChanges
		changes = append(changes[:maxChanges], Change{Pointer: "", New: fmt.Sprintf("and %d more changes", rest)})
	}
	if how, _ := k.of(); how.meaning != nil && !old.IsZero() {
		means = how.meaning(old, now)
	}
	return changes, means
}
