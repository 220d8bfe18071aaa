package policydata

import (
	"bytes"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// An editor changes entries of a grants file and leaves its other lines alone. It does so by lines,
// which does not suit every way of writing YAML: its callers read the result back.
type editor struct {
	grants []Grant // as the lines are meant to read
	edited bool

	lines  [][]byte
	starts []int  // index of the first line of each entry
	indent string // of the entries
}

// newEditor returns an editor of a file that holds grants, which begin at the
// given lines, counted from 1.
func newEditor(data []byte, grants []Grant, at []int) *editor {
	e := &editor{grants: slices.Clone(grants), lines: slices.Collect(bytes.Lines(bytes.Clone(data)))}
	for i, n := range at {
		from := 0
		if i > 0 {
			from = e.starts[i-1] + 1
		}
		start := min(n-1, len(e.lines)-1)
		for start > from && !bytes.HasPrefix(bytes.TrimSpace(e.lines[start]), []byte("-")) {
			start-- // the dash is on a line of its own
		}
		e.starts = append(e.starts, max(start, 0))
	}
	if len(at) > 0 {
		first := e.lines[e.starts[0]]
		e.indent = string(first[:len(first)-len(bytes.TrimLeft(first, " "))])
	}
	return e
}

// add appends an entry.
func (e *editor) add(g Grant) {
	e.edited = true
	if len(e.grants) == 0 { // the empty list may be written out
		e.lines = slices.DeleteFunc(e.lines, func(line []byte) bool { return string(bytes.TrimSpace(line)) == "[]" })
	}
	if n := len(e.lines); n > 0 && !bytes.HasSuffix(e.lines[n-1], []byte("\n")) {
		e.lines[n-1] = append(e.lines[n-1], '\n')
	}
	e.grants = append(e.grants, g)
	e.lines = append(e.lines, []byte(e.indent+renderGrant(g)))
}

// replace writes g in the place of entry i. Of an empty grant nothing is left but the comments that
// were in the entry, which are kept as lines before it. The lines after it stay as they are. Entries
// are replaced from the last to the first, because the starts of those after i are no longer right.
func (e *editor) replace(i int, g Grant) {
	e.edited = true
	from, to := e.starts[i], len(e.lines)
	if i+1 < len(e.starts) {
		to = e.starts[i+1]
	}
	for to > from+1 && isComment(e.lines[to-1]) {
		to--
	}
	var text [][]byte
	for _, c := range comments(bytes.Join(e.lines[from:to], nil)) {
		text = append(text, []byte(e.indent+"#"+c+"\n"))
	}
	if g.Empty() {
		e.grants = slices.Delete(e.grants, i, i+1)
		if e.starts = slices.Delete(e.starts, i, i+1); i < len(e.starts) {
			e.starts[i] = from + len(text)
		}
	} else {
		e.grants[i] = g
		text = append(text, []byte(e.indent+renderGrant(g)))
	}
	e.lines = slices.Replace(e.lines, from, to, text...)
}

func isComment(line []byte) bool {
	t := bytes.TrimSpace(line)
	return len(t) == 0 || t[0] == '#'
}

// comments returns the comments in a piece of YAML, without their marks.
func comments(text []byte) []string {
	var all []string
	for _, tk := range lexer.Tokenize(string(text)) {
		if tk.Type == token.CommentType {
			all = append(all, strings.TrimRight(tk.Value, "\r\n"))
		}
	}
	return all
}

// renderGrant writes an entry on one line.
func renderGrant(g Grant) string {
	var parts []string
	for _, k := range g.keys() {
		if len(*k.values) == 0 {
			continue
		}
		quoted := make([]string, len(*k.values))
		for i, v := range *k.values {
			quoted[i] = tree.Scalar(v)
		}
		parts = append(parts, k.key+": ["+strings.Join(quoted, ", ")+"]")
	}
	return "- {" + strings.Join(parts, ", ") + "}\n"
}
