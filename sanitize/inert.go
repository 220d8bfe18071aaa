package sanitize

import (
	"strings"
)

// inert makes tags and links inert, those of them that were seen. All it does is to put in what
// takes them their form, a space nearly always.
func (f *findings) inert(s string, l Links, seen sight) string {
	edits := inertEdits(s, l, seen)
	for _, e := range edits {
		f.remove(e.rule)
	}
	return apply(s, edits, f.max)
}

// inertEdits returns what makes a text inert, by place, each place once.
func inertEdits(s string, l Links, seen sight) []edit {
	links := seen&seesLink != 0 || seen&seesAngle != 0 && strings.Contains(s, "mermaid")
	var edits []edit
	for _, v := range views(s, seen&seesForeign != 0) {
		first := len(edits)
		if links {
			edits = append(edits, newLinkPass(v.s, l).run()...)
		}
		if seen&seesAngle != 0 {
			edits = append(edits, newTagPass(v.s, l).run()...)
		}
		for i := range edits[first:] {
			edits[first+i].at = v.at(edits[first+i].at)
		}
	}
	return ordered(edits)
}
