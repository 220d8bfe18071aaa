package pages

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// kinds are what became of calls, as [effect] says, in the order in which a bar has them from below.
var kinds = []struct{ of, words string }{{"refused", "refused"}, {"failed", "failed"}, {"ok", "answered"}}

// A Span is a time that is divided into equal parts, with how many calls of each kind there were
// in each.
type Span struct {
	from  time.Time
	part  time.Duration
	calls [60]map[string]int // by what effect says
}

// LastHour is the hour before a time, in minutes.
func LastHour(now time.Time) *Span {
	return &Span{from: now.Add(-time.Hour), part: time.Minute}
}

// Around is the time from the first to the last of some calls, in parts of whole seconds.
func Around(first, last time.Time) *Span {
	s := &Span{from: first.Truncate(time.Second)}
	s.part = max(time.Second, (last.Sub(s.from)/time.Duration(len(s.calls)) + time.Second).Truncate(time.Second))
	return s
}

// Add counts a call that ended with a code. One outside the span does not count.
func (s *Span) Add(at time.Time, code string) {
	i := int(at.Sub(s.from) / s.part)
	if at.Before(s.from) || i >= len(s.calls) {
		return
	}
	if s.calls[i] == nil {
		s.calls[i] = make(map[string]int)
	}
	s.calls[i][effect(code)]++
}

func total(calls map[string]int) (n int) {
	for _, one := range calls {
		n += one
	}
	return n
}

// Chart draws the calls of a span as bars over an axis of time.
func Chart(s *Span) template.HTML {
	const width, height, left, above, below = 14, 110, 40, 10, 22
	most, all := 1, 0
	for _, calls := range s.calls {
		most, all = max(most, total(calls)), all+total(calls)
	}
	right := left + len(s.calls)*width
	var b strings.Builder
	fmt.Fprintf(&b, `<figure class="chart"><div class="scroll" tabindex="0" role="group" aria-label="Calls over time"><svg role="img" aria-label="%d calls, at most %d in one bar of %v" viewBox="0 0 %d %d">`, all, most, s.part, right+30, above+height+below)
	fmt.Fprintf(&b, `<path class="axis" d="M%d %dV%dH%d"/>`, left, above, above+height, right)
	fmt.Fprintf(&b, `<text class="small" x="%d" y="%d" text-anchor="end">%d</text><text class="small" x="%d" y="%d" text-anchor="end">0</text>`, left-6, above+9, most, left-6, above+height)
	for i := 0; i <= len(s.calls); i += len(s.calls) / 4 {
		fmt.Fprintf(&b, `<text class="small" x="%d" y="%d" text-anchor="middle">%s</text>`, left+i*width, above+height+16, s.at(i))
	}
	for i, calls := range s.calls {
		if calls == nil {
			continue
		}
		y, said := above+height, make([]string, 0, len(kinds))
		var bar strings.Builder
		for _, kind := range kinds {
			if n := calls[kind.of]; n > 0 {
				h := max(2, n*height/most)
				y -= h
				fmt.Fprintf(&bar, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`, kind.of, left+i*width+2, y, width-4, h)
				said = append(said, fmt.Sprintf("%d %s", n, kind.words))
			}
		}
		fmt.Fprintf(&b, `<g><title>%s: %s</title>%s</g>`, s.at(i), strings.Join(said, ", "), bar.String())
	}
	b.WriteString(`</svg></div><figcaption>`)
	for _, kind := range kinds {
		fmt.Fprintf(&b, `<span class="key %s">%s</span> `, kind.of, kind.words)
	}
	b.WriteString(`</figcaption></figure>`)
	return template.HTML(b.String()) // numbers and words of this file alone
}

// at is when a part of the span begins: with the day, if the span is longer than one.
func (s *Span) at(part int) string {
	t := s.from.Add(time.Duration(part) * s.part).Local()
	switch whole := time.Duration(len(s.calls)) * s.part; {
	case whole > 24*time.Hour:
		return t.Format("01-02 15:04")
	case whole > 10*time.Minute:
		return t.Format("15:04")
	default:
		return t.Format(time.TimeOnly)
	}
}
