package provenance

import (
	"cmp"
	"slices"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/address"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A Contradiction is a part of a label that recorded calls contradict.
type Contradiction struct {
	At    string `json:"at"`  // a place of results, or an argument
	Why   string `json:"why"` // in words
	Call  int    `json:"call,omitempty"`
	Calls int    `json:"calls"` // of the tool that were looked at
}

// CheckLabel returns what recorded calls of a tool contradict in its label, sorted by place. Call is
// the number of the first such call, and 0 if it takes all of them to see it.
func CheckLabel(calls []Saying) []Contradiction {
	var all []Contradiction
	add := func(at, why string, call int) {
		if !slices.ContainsFunc(all, func(c Contradiction) bool { return c.At == at && c.Why == why }) {
			all = append(all, Contradiction{At: at, Why: why, Call: call, Calls: len(calls)})
		}
	}
	echoes := new(Echoes)
	var docs []doc.Doc
	for i, s := range calls {
		here := slices.Collect(documents(s.Result.Get("content"), s.Result.Get("structuredContent"), s.Structure))
		docs = append(docs, here...)
		if at := proseAmongIDs(s); at != "" {
			add(at, "labelled ids, and a result has a text there that is not an id", i+1)
		} else if at := Contradicts(echoes, s); at != "" {
			why := "labelled trusted, and has none of the labelled places"
			if s.Said.Result == ResultEcho {
				why = "labelled echo, and says what the call did not"
			}
			add(at, why, i+1)
		}
		for name, v := range s.Args.Members() {
			s.Said.checkArgument("/"+pointer.Escape(name), v, func(why string) { add("/"+pointer.Escape(name), why, i+1) })
		}
	}
	if len(calls) == 0 {
		return nil
	}
	said := calls[0].Said
	for _, place := range said.Identity {
		if held := place.everywhere(docs); len(held) > 0 && !slices.ContainsFunc(held, func(v placed) bool { return len(addressesOf(v.doc)) > 0 }) {
			add(string(place), "labelled identity, and its value is not an address", 0)
		}
	}
	if len(docs) > 0 {
		for _, place := range MissingIn(said, docs) {
			add(string(place), "no result had it", 0)
		}
	}
	slices.SortFunc(all, func(a, b Contradiction) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Why, b.Why)) })
	return all
}

// checkArgument says what an argument of a call contradicts.
func (l ToolLabels) checkArgument(at string, v doc.Doc, say func(why string)) {
	if !slices.ContainsFunc(l.Effects, func(e ToolEffect) bool { return e != EffectRead }) {
		return
	}
	if (l.To != nil || l.Commits != nil) && !slices.ContainsFunc(slices.Concat(l.Control, l.To, l.Commits, l.Content), func(root string) bool { return below(at, []string{root}) || below(root, []string{at}) }) {
		say("no label names this argument, so it counts as to")
	}
	for _, leaf := range leavesOf(v) {
		if text := TextOf(leaf); isRecipient(KindOf(l, at)) && !digits(text) && address.Of(text) != "" {
			say("labelled with a kind of ids, and its value is an address")
		}
	}
}

func (at Place) everywhere(docs []doc.Doc) (all []placed) {
	for _, d := range docs {
		all = append(all, at.in(d)...)
	}
	return all
}
