package sanitize

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A view is a text as some reader sees it: with plain white space in the place of
// foreign one, and without the marks of quotations, which Markdown takes away from
// the lines of what is quoted, also in the middle of a tag.
type view struct {
	s  string
	of *view // what it was made from; nil for the text itself
	// from and to are places in s and in what it was made from, behind each change.
	from, to []int
}

// at returns where s[i] is in the text.
func (v *view) at(i int) int {
	for ; v.of != nil; v = v.of {
		n, found := slices.BinarySearch(v.from, i)
		if !found {
			n--
		}
		if n >= 0 {
			i += v.to[n] - v.from[n]
		}
	}
	return i
}

// changed returns the view in which parts of v have a replacement: next returns those
// one after the other, and a negative start once there are no more. If there are none
// it is v.
func (v *view) changed(next func() (start, end int, with string)) *view {
	var b strings.Builder
	out, last := &view{of: v}, 0
	for start, end, with := next(); start >= 0; start, end, with = next() {
		b.WriteString(v.s[last:start])
		b.WriteString(with)
		last = end
		out.from, out.to = append(out.from, b.Len()), append(out.to, end)
	}
	if out.from == nil {
		return v
	}
	b.WriteString(v.s[last:])
	out.s = b.String()
	return out
}

// views returns each view of a text; foreign says that it may have foreign white space.
func views(s string, foreign bool) []*view {
	text := &view{s: s}
	all := []*view{text, text.unquoted(nil)}
	if foreign {
		plain := text.plain()
		all = append(all, text.unquoted(endsLine), plain, plain.unquoted(nil))
	}
	return slices.CompactFunc(all, func(a, b *view) bool { return a.s == b.s })
}

// plain returns the view with plain white space.
func (v *view) plain() *view {
	at := 0
	return v.changed(func() (start, end int, with string) {
		i := strings.IndexFunc(v.s[at:], func(r rune) bool { return r > 0x7f && isForeign(r) })
		if i < 0 {
			return -1, 0, ""
		}
		r, n := utf8.DecodeRuneInString(v.s[at+i:])
		start, end, with = at+i, at+i+n, " "
		if endsLine(r) {
			with = "\n"
		}
		at = end
		return start, end, with
	})
}

// unquoted returns the view without the marks of quotations that lines begin with, for
// a reader that ends lines where ends says; nil: at line feeds alone.
func (v *view) unquoted(ends func(rune) bool) *view {
	if !strings.HasPrefix(v.s, ">") && ends == nil && !quotes(v.s) {
		return v
	}
	line := 0
	return v.changed(func() (start, end int, with string) {
		for line >= 0 {
			start = line
			line = nextLine(v.s, line, ends)
			if end = quoteMarks(v.s, start); end > start {
				return start, end, ""
			}
		}
		return -1, 0, ""
	})
}

// nextLine returns where the line after that of s[i] begins, -1 if there is none.
func nextLine(s string, i int, ends func(rune) bool) int {
	if ends == nil {
		if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
			return i + n + 1
		}
		return -1
	}
	n := strings.IndexFunc(s[i:], ends)
	if n < 0 {
		return -1
	}
	_, size := utf8.DecodeRuneInString(s[i+n:])
	return i + n + size
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
