package pages

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/audit/flow"
	"github.com/wasmgate/wasmgate/internal/escaped"
)

// Sizes of the picture, in pixels, and how much of a flow it shows: the table beneath shows all.
const (
	boxWidth, boxHeight, boxGap = 230, 40, 14
	middle                      = 150
	mostBoxes                   = 12
)

// Picture draws a flow: at the left what was read, with the labels on the arrows; at the right
// what was done then, and what was stopped. A line from left to right is a value for which a call
// was stopped, with the argument that held it.
func Picture(f flow.Flow) template.HTML {
	read, did := f.Read[max(0, len(f.Read)-mostBoxes):], f.Did[max(0, len(f.Did)-mostBoxes):]
	rows := max(len(read), len(did), 1)
	height := rows*(boxHeight+boxGap) + boxGap
	width := 2*boxWidth + 2*middle + 90
	y := func(i, of int) int { return boxGap + (height-of*(boxHeight+boxGap))/2 + i*(boxHeight+boxGap) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="flow" role="group" aria-label="What the session has read, and what it did then" viewBox="-2 -2 %d %d" width="%d" height="%d">`, width+4, height+4, width+4, height+4)
	centre, cy := boxWidth+middle+45, height/2
	from := make(map[string]int) // middles of boxes at the left, by call
	for i, c := range read {
		at := y(i, len(read))
		from[c.Call] = at + boxHeight/2
		labels := c.Labels
		if c.Own {
			labels = append([]string{"own record"}, labels...)
		}
		arrow(&b, boxWidth, at+boxHeight/2, centre-45, cy, "untrusted", strings.Join(labels, ", "))
		box(&b, 0, at, "read", c)
	}
	for i, c := range did {
		at, kind := y(i, len(did)), effect(c.Code)
		set := ""
		if c.Set != "" {
			set = "approved list"
		}
		arrow(&b, centre+45, cy, centre+45+middle, at+boxHeight/2, kind, set)
		box(&b, centre+45+middle, at, kind, c)
		for _, v := range oneEach(c.Values) {
			if y, drawn := from[v.Call]; drawn {
				line(&b, boxWidth, y, centre+45+middle, at+boxHeight/2, v.Argument)
			}
		}
	}
	fmt.Fprintf(&b, `<ellipse class="session" cx="%d" cy="%d" rx="45" ry="22"/><text class="label" x="%d" y="%d" text-anchor="middle">session</text></svg>`, centre, cy, centre, cy+4)
	return template.HTML(b.String()) // every text in it was escaped
}

func arrow(b *strings.Builder, x1, y1, x2, y2 int, kind, label string) {
	fmt.Fprintf(b, `<path class="arrow %s" d="M%d %dC%d %d %d %d %d %d"/>`, kind, x1, y1, (x1+x2)/2, y1, (x1+x2)/2, y2, x2, y2)
	if label != "" {
		fmt.Fprintf(b, `<text class="label" x="%d" y="%d">%s</text>`, x1+6, y1-4, template.HTMLEscapeString(short(escaped.Text(label), 24)))
	}
}

// oneEach leaves one value of each call, with all the arguments that hold one of it.
func oneEach(values []flow.Value) (all []flow.Value) {
	for _, v := range values {
		i := slices.IndexFunc(all, func(o flow.Value) bool { return o.Call == v.Call })
		switch {
		case i < 0:
			all = append(all, v)
		case !slices.Contains(strings.Split(all[i].Argument, ", "), v.Argument):
			all[i].Argument += ", " + v.Argument
		}
	}
	return all
}

// line draws the way of a value, straight, below the curves of labels.
func line(b *strings.Builder, x1, y1, x2, y2 int, argument string) {
	fmt.Fprintf(b, `<path class="value" d="M%d %dL%d %d"/><text class="label value" x="%d" y="%d" text-anchor="end">%s</text>`,
		x1, y1, x2, y2, x2-6, y2+14, template.HTMLEscapeString(short(escaped.Text(argument), 24)))
}

func box(b *strings.Builder, x, y int, kind string, c flow.Call) {
	word := c.Code
	if kind == "read" {
		word = clock(c.Time)
	}
	fmt.Fprintf(b, `<a href="/ui/calls/%s"><rect class="box %s" x="%d" y="%d" width="%d" height="%d" rx="6"/><text x="%d" y="%d">%s</text><text class="small" x="%d" y="%d">%s</text></a>`,
		template.HTMLEscapeString(template.URLQueryEscaper(c.Call)), kind, x, y, boxWidth, boxHeight,
		x+10, y+17, template.HTMLEscapeString(short(escaped.Text(c.Tool), 30)), x+10, y+33, template.HTMLEscapeString(short(word, 34)))
}

func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
