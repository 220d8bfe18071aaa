package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/pointer"
	"github.com/wasmgate/wasmgate/internal/scan"
)

// A Change is a field of a definition that is not what it was. Old and New are
// what is written there, visible (see [Visible]), with what both have in common
// left out of long texts; "" stands for nothing at all.
type Change struct {
	Pointer string `json:"pointer"` // JSON Pointer into the definition; "" is all of it
	Old     string `json:"old,omitempty"`
	New     string `json:"new,omitempty"`
}

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

// maxChanges bounds how many fields of a definition are compared one by one.
const maxChanges = 500

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

// Compare returns field by field how two definitions of a kind differ, and what the changes
// mean. An absent old definition has no fields. There are changes exactly if the digests
// differ.
func Compare(k Kind, old, now gate.Doc) (changes []Change, means []string) {
	c := comparison{}
	if old.IsZero() && now.Kind() == doc.Object {
		for _, name := range names(gate.Doc{}, now) {
			c.walk("/"+pointer.Escape(name), gate.Doc{}, now.Get(name))
		}
	} else {
		c.walk("", old, now)
	}
	if k == Page {
		slices.SortStableFunc(c.changes, htmlLast)
	}
	if len(c.changes) > maxChanges {
		rest := len(c.changes) - maxChanges
		c.changes = append(c.changes[:maxChanges], Change{Pointer: "", New: fmt.Sprintf("and %d more changes", rest)})
	}
	if how, _ := k.of(); how.meaning != nil && !old.IsZero() {
		means = how.meaning(old, now)
	}
	return c.changes, means
}

type comparison struct{ changes []Change }

func (c *comparison) walk(at string, old, now gate.Doc) {
	switch {
	case !old.IsZero() && !now.IsZero() && old.Digest() == now.Digest():
	case old.Kind() == doc.Object && now.Kind() == doc.Object:
		for _, name := range names(old, now) {
			c.walk(at+"/"+pointer.Escape(name), old.Get(name), now.Get(name))
		}
	case old.Kind() == doc.Array && now.Kind() == doc.Array && length(old) == length(now):
		a, b := slices.Collect(old.Elements()), slices.Collect(now.Elements())
		for i := range a {
			c.walk(fmt.Sprintf("%s/%d", at, i), a[i], b[i])
		}
	default:
		from, to := contrast(shown(old), shown(now))
		c.changes = append(c.changes, Change{Visible(at), from, to})
	}
}

// names returns the names of the members of both objects, sorted.
func names(a, b gate.Doc) []string {
	set := make(map[string]bool)
	for name := range a.Members() {
		set[name] = true
	}
	for name := range b.Members() {
		set[name] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func length(array gate.Doc) int {
	n := 0
	for range array.Elements() {
		n++
	}
	return n
}

// shown writes a value: a string as it is, and what is not one as JSON.
func shown(d gate.Doc) string {
	if d.Kind() == doc.String {
		return `"` + d.Text() + `"`
	}
	return string(d.Canonical())
}

const (
	maxShown   = 4 << 10 // bytes of a value that are shown
	around     = 60      // bytes before and after a difference in a long text
	maxSpelled = 24      // bytes of a difference up to which its characters are spelled out
)

// contrast makes two texts visible. It shortens what long texts have in common, and spells out a
// difference of a few characters, because letters of different scripts, and different forms of one
// letter, look the same.
func contrast(old, now string) (string, string) {
	if old == "" || now == "" {
		return clip(Visible(old)), clip(Visible(now))
	}
	head, tail := common(old, now)
	from, to := old[head:len(old)-tail], now[head:len(now)-tail]
	write := Visible
	if len(from)+len(to) <= maxSpelled {
		write = spelled
	}
	before, after := old[:head], old[len(old)-tail:]
	if len(before) > 2*around {
		before = "…" + before[boundary(before, len(before)-around):]
	}
	if len(after) > 2*around {
		after = after[:boundary(after, around)] + "…"
	}
	before, after = Visible(before), Visible(after)
	return before + clip(write(from)) + after, before + clip(write(to)) + after
}

// common returns how many bytes at the beginning and at the end two texts have in
// common, in whole characters, marks with their letters.
func common(a, b string) (head, tail int) {
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for head > 0 && (within(a, head) || within(b, head)) {
		head--
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && (within(a, len(a)-tail) || within(b, len(b)-tail)) {
		tail--
	}
	return head, tail
}

// within reports whether s cannot be cut at i: in the middle of a character, or
// between a letter and its mark.
func within(s string, i int) bool {
	if i >= len(s) {
		return false
	}
	if !utf8.RuneStart(s[i]) {
		return true
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return unicode.Is(unicode.M, r)
}

// boundary returns the first place from i on at which s can be cut.
func boundary(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}

func clip(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := boundary(s, maxShown)
	return fmt.Sprintf("%s… (%d bytes more)", s[:cut], len(s)-cut)
}
