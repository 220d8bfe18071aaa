package provenance

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// matched marks a place that some result of its tool had.
const matched = -1

// count counts a result for the labelled places of its tool that no result has had so far.
// Empty results and errors have no places.
func (e *Echoes) count(s Saying) {
	if e == nil || !s.Said.places() || s.Result.Get("isError").True() {
		return
	}
	tool, _, _ := strings.Cut(s.Tool, " ")
	e.mu.Lock()
	before := e.places[tool]
	e.mu.Unlock()
	var docs []doc.Doc
	read := false
	now := make(map[Place]int)
	for place := range s.Said.eachPlace {
		now[place] = before[place]
		if before[place] == matched {
			continue
		}
		if !read {
			if docs, read = slices.Collect(documents(s.Result.Get("content"), s.Result.Get("structuredContent"), s.Structure)), true; !saysAny(s.Result, docs) {
				return
			}
		}
		if now[place]++; slices.ContainsFunc(docs, place.isIn) {
			now[place] = matched
		}
	}
	if !read && len(now) == len(before) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.places == nil || len(e.places) >= maxEchoes {
		e.places = make(map[string]map[Place]int)
	}
	e.places[tool] = now
}

// saysAny reports whether a result holds any text or number.
func saysAny(result doc.Doc, docs []doc.Doc) bool {
	if len(docs) > 0 {
		return slices.ContainsFunc(docs, func(d doc.Doc) bool { return len(leavesOf(d)) > 0 })
	}
	for block := range result.Get("content").Elements() {
		if block.Get("text").Text() != "" {
			return true
		}
	}
	return false
}

func (at Place) isIn(d doc.Doc) bool { return len(at.in(d)) > 0 }

// A Missing is a labelled place that none of the results of its tool has had.
type Missing struct {
	Tool    string // server__tool
	Place   Place
	Results int // that were looked at
}

// Missing returns these places, sorted.
func (e *Echoes) Missing() (all []Missing) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for tool, places := range e.places {
		for place, n := range places {
			if n > 0 {
				all = append(all, Missing{tool, place, n})
			}
		}
	}
	slices.SortFunc(all, func(a, b Missing) int { return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Place, b.Place)) })
	return all
}

// MissingIn returns the labelled places that none of the documents has.
func MissingIn(said ToolLabels, docs []doc.Doc) (all []Place) {
	for place := range said.eachPlace {
		if !slices.ContainsFunc(docs, place.isIn) {
			all = append(all, place)
		}
	}
	slices.Sort(all)
	return all
}
