package sanitize

import (
	"slices"
	"strings"
)

// An edit puts text into another, before at, because of a rule.
type edit struct {
	at   int
	text string
	rule string
}

// inert makes tags and links inert, those of them that were seen. All it does is to put in what
// takes them their form, a space nearly always.
func (f *findings) inert(s string, l Links, seen sight) string {
	edits := inertEdits(s, l, seen)
	for _, e := range edits {
		f.remove(e.rule)
	}
	return apply(s, edits)
}

// inertEdits returns what makes a text inert, by place, each place once.
func inertEdits(s string, l Links, seen sight) []edit {
	links := seen&seesLink != 0 || seen&seesAngle != 0 && strings.Contains(s, "mermaid")
	edits := views(s, func(v view) (found []edit) {
		if links {
			found = newLinkPass(v.s, l).run()
		}
		if seen&seesAngle != 0 {
			found = append(found, newTagPass(v.s, l).run()...)
		}
		return found
	})
	return ordered(edits)
}

// ordered returns edits by place, the first of each place.
func ordered(edits []edit) []edit {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	return slices.CompactFunc(edits, func(a, b edit) bool { return a.at == b.at })
}

// apply puts edits, ordered by place, into a text.
func apply(s string, edits []edit) string {
	o := output{from: s}
	for _, e := range edits {
		o.insert(e.at, e.text)
	}
	return o.String()
}

// A view is a text as some reader sees it: Markdown takes the marks of quotations
// away from the lines of what is quoted, also in the middle of a tag.
type view struct {
	s string
	// from and to are where each line that lost its marks begins, in s and in the
	// text.
	from, to []int
}

// at returns where s[i] stands in the text.
func (v view) at(i int) int {
	n, found := slices.BinarySearch(v.from, i)
	if !found {
		n--
	}
	if n < 0 {
		return i
	}
	return v.to[n] + i - v.from[n]
}

// views has each view of a text looked at, and returns what was found in all of
// them, by its place in the text.
func views(s string, look func(view) []edit) []edit {
	edits := look(view{s: s})
	v := unquoted(s)
	if v.s == s {
		return edits
	}
	for _, e := range look(v) {
		e.at = v.at(e.at)
		edits = append(edits, e)
	}
	return edits
}

// unquoted returns the text without marks of quotations at the beginning of its
// lines.
func unquoted(s string) view {
	if !strings.HasPrefix(s, ">") && !quotes(s) {
		return view{s: s}
	}
	var b strings.Builder
	var v view
	last := 0
	for start := 0; start < len(s); {
		if end := quoteMarks(s, start); end > start {
			b.WriteString(s[last:start])
			v.from, v.to = append(v.from, b.Len()), append(v.to, end)
			last = end
		}
		next := strings.IndexByte(s[start:], '\n')
		if next < 0 {
			break
		}
		start += next + 1
	}
	b.WriteString(s[last:])
	v.s = b.String()
	return v
}

// quotes reports whether a line but the first begins with the mark of a
// quotation.
func quotes(s string) bool {
	for i := 0; ; {
		next := strings.IndexByte(s[i:], '\n')
		if next < 0 {
			return false
		}
		for i += next + 1; i < len(s) && (s[i] == ' ' || s[i] == '\t'); {
			i++
		}
		if i < len(s) && s[i] == '>' {
			return true
		}
	}
}

// quoteMarks returns where the marks of quotations end that the line at start
// begins with; start if it has none.
func quoteMarks(s string, start int) int {
	end := start
	for i := start; i < len(s); i++ {
		switch s[i] {
		case '>':
			end = i + 1
		case ' ', '\t':
		default:
			return end
		}
	}
	return end
}
