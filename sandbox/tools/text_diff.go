package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/sandbox/tools/tool"
)

// maxEdits bounds the search for the shortest diff: its memory grows with the
// square of the changed lines, and 1,500 of them take 9 MB.
const maxEdits = 1500

var textDiff = tool.Tool{
	Name:  "text_diff",
	Title: "Text diff",
	Description: "Compares two texts line by line and returns a unified diff. " +
		"The diff is the shortest one up to 1,500 changed lines; beyond that the differing middle is shown as one block.",
	InputSchema: []byte(`{"type":"object","properties":{
		"old":{"type":"string","description":"The text before."},
		"new":{"type":"string","description":"The text after."},
		"old_name":{"type":"string","default":"old","description":"File name for the diff's header."},
		"new_name":{"type":"string","default":"new","description":"File name for the diff's header."},
		"context":{"type":"integer","minimum":0,"maximum":100,"default":3,"description":"Unchanged lines shown around a change."}},
		"required":["old","new"],"additionalProperties":false}`),
	OutputSchema: []byte(`{"type":"object","properties":{
		"equal":{"type":"boolean","description":"True if the texts are the same."},
		"added":{"type":"integer","minimum":0,"description":"Lines only in the new text."},
		"removed":{"type":"integer","minimum":0,"description":"Lines only in the old text."},
		"diff":{"type":"string","description":"The unified diff; empty if the texts are the same."}},
		"required":["equal","added","removed","diff"],"additionalProperties":false}`),
	Annotations: []byte(tool.ReadOnly),
	Run:         tool.Typed(runTextDiff),
}

type textDiffIn struct {
	Old     string `json:"old"`
	New     string `json:"new"`
	OldName string `json:"old_name"`
	NewName string `json:"new_name"`
	Context *int   `json:"context"`
}

type textDiffOut struct {
	Equal   bool   `json:"equal"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Diff    string `json:"diff"`
}

// An edit is one line of a diff: kept ' ', removed '-' or added '+'.
type edit struct {
	kind byte
	line string // with its line feed, if it has one
}

func runTextDiff(in textDiffIn) (textDiffOut, error) {
	context, err := tool.Bounded("context", in.Context, 3, 0, 100)
	if err != nil {
		return textDiffOut{}, err
	}
	for name, s := range map[string]string{"old_name": in.OldName, "new_name": in.NewName} {
		if strings.ContainsAny(s, "\r\n") {
			return textDiffOut{}, fmt.Errorf("argument %s: a file name has no line break", name)
		}
	}
	if in.Old == in.New {
		return textDiffOut{Equal: true}, nil
	}
	edits := script(lines(in.Old), lines(in.New))
	var out textDiffOut
	for _, e := range edits {
		switch e.kind {
		case '+':
			out.Added++
		case '-':
			out.Removed++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", or(in.OldName, "old"), or(in.NewName, "new"))
	writeHunks(&b, edits, context)
	out.Diff = b.String()
	return out, nil
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func lines(s string) []string {
	return slices.Collect(strings.Lines(s))
}

// script returns the edits that make b of a.
func script(a, b []string) []edit {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	edits := appendEdits(nil, ' ', a[:start])
	midA, midB := a[start:len(a)-end], b[start:len(b)-end]
	if middle, ok := shortest(midA, midB); ok {
		edits = append(edits, middle...)
	} else {
		edits = appendEdits(appendEdits(edits, '-', midA), '+', midB)
	}
	return appendEdits(edits, ' ', a[len(a)-end:])
}

func appendEdits(edits []edit, kind byte, lines []string) []edit {
	for _, l := range lines {
		edits = append(edits, edit{kind, l})
	}
	return edits
}

// shortest is the greedy algorithm of Myers, "An O(ND) Difference Algorithm
// and Its Variations" (1986): far[k] is the furthest position in a that d
// edits reach on the diagonal k. It is false when maxEdits do not suffice.
func shortest(a, b []string) ([]edit, bool) {
	limit := min(len(a)+len(b), maxEdits)
	middle := limit + 1 // the index of diagonal 0
	far := make([]int32, 2*limit+3)
	var trace [][]int32 // trace[d] holds far for the diagonals -d to d, after d edits
	for d := 0; d <= limit; d++ {
		for k := -d; k <= d; k += 2 {
			x := int(far[middle+k+1])
			if k != -d && (k == d || far[middle+k-1] >= far[middle+k+1]) {
				x = int(far[middle+k-1]) + 1
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			far[middle+k] = int32(x)
			if x >= len(a) && x-k >= len(b) {
				return walkBack(a, b, trace), true
			}
		}
		trace = append(trace, slices.Clone(far[middle-d:middle+d+1]))
	}
	return nil, false
}

// walkBack follows the trace from the end of both texts to their start.
func walkBack(a, b []string, trace [][]int32) []edit {
	var edits []edit
	x, y := len(a), len(b)
	for d := len(trace); d > 0; d-- {
		far := func(k int) int { return int(trace[d-1][k+d-1]) }
		from := x - y - 1 // the diagonal of the step before: a line of a was removed
		if k := x - y; k == -d || k != d && far(k-1) < far(k+1) {
			from = k + 1 // a line of b was added
		}
		fromX := far(from)
		fromY := fromX - from
		for x > fromX && y > fromY {
			x, y = x-1, y-1
			edits = append(edits, edit{' ', a[x]})
		}
		if x == fromX {
			edits = append(edits, edit{'+', b[fromY]})
		} else {
			edits = append(edits, edit{'-', a[fromX]})
		}
		x, y = fromX, fromY
	}
	for ; x > 0; x-- {
		edits = append(edits, edit{' ', a[x-1]})
	}
	slices.Reverse(edits)
	return edits
}

// writeHunks writes the changed parts with context kept lines around them.
func writeHunks(b *strings.Builder, edits []edit, context int) {
	oldLine, newLine := 1, 1 // the numbers of edits[at]'s line
	for at := 0; at < len(edits); {
		first := slices.IndexFunc(edits[at:], func(e edit) bool { return e.kind != ' ' })
		if first < 0 {
			return
		}
		start := max(at, at+first-context)
		oldLine, newLine = oldLine+start-at, newLine+start-at
		end := hunkEnd(edits, at+first, context)
		removed, added := writeHunk(b, edits[start:end], oldLine, newLine)
		oldLine, newLine, at = oldLine+removed, newLine+added, end
	}
}

// hunkEnd returns where the hunk with a change at i ends: a kept run that is
// longer than the context of both its neighbours parts two hunks.
func hunkEnd(edits []edit, i, context int) int {
	kept := 0
	for ; i < len(edits) && kept <= 2*context; i++ {
		kept++
		if edits[i].kind != ' ' {
			kept = 0
		}
	}
	return i - max(0, kept-context)
}

// writeHunk returns how many lines of the old and the new text the hunk spans.
func writeHunk(b *strings.Builder, edits []edit, oldLine, newLine int) (removed, added int) {
	for _, e := range edits {
		if e.kind != '+' {
			removed++
		}
		if e.kind != '-' {
			added++
		}
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(oldLine, removed), span(newLine, added))
	for _, e := range edits {
		b.WriteByte(e.kind)
		b.WriteString(e.line)
		if !strings.HasSuffix(e.line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
	return removed, added
}

// span writes a range as GNU diff does: an empty one names the line before it.
func span(line, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}
