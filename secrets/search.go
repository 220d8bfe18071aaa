package secrets

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// A window is a part of a text in which a rule's expression is run.
type window struct {
	rule     *rule
	from, to int
	cost     int // bytes that were gone through to find its ends
}

// maxCost bounds how often, on average, the bytes of a text are gone through to
// find the windows of a rule. Texts that are made to cost more are searched whole.
const maxCost = 8

// A pass is what is written down while keywords are found.
type pass struct {
	path, text string
	windows    []window
	last       []int // by rule: 1 + the index of its last window; 0: none
	looked     int   // bytes behind keywords that were looked at
}

var passes = sync.Pool{New: func() any { return new(pass) }}

func (p *pass) reset(path, text string, rules int) {
	p.path, p.text, p.looked = path, text, 0
	clear(p.windows)
	p.windows = p.windows[:0]
	p.last = slices.Grow(p.last[:0], rules)[:rules]
	clear(p.last)
}

// Bounds of the matches that are looked at in one text: each costs up to 0.3 ms. If a rule
// has more, the text is a secret of this rule as a whole; the other rules are still searched,
// because that rule may only report.
const (
	maxJudged = 5_000
	maxOfRule = 1_000
)

// search finds what the rules find in a text, as the library would.
func (s *Scanner) search(path, text string) []match {
	var p *pass // most texts have no keyword
	open := func(rules []*rule, start int) {
		if p == nil {
			p = passes.Get().(*pass)
			p.reset(path, text, len(s.rules))
		}
		for _, r := range rules {
			if !s.skip[r.order] {
				p.keyword(r, start)
			}
		}
	}
	if len(s.everywhere) > 0 {
		open(s.everywhere, 0)
	}
	s.keywords.each(text, func(w *word, start int) { open(w.rules, start) })
	if p == nil {
		return nil
	}
	defer passes.Put(p)
	defer p.reset("", "", 0)
	if len(p.windows) == 0 {
		return nil
	}
	// No generic rules hold in a file of checksums, pictures and the like. Its name is looked at
	// when one of them matches: that takes longer than to search most texts.
	lenient := sync.OnceValue(func() bool { return s.global.paths(path) })
	var matches []match
	var last *rule
	left, ofRule := maxJudged, 0
	for _, w := range mergeWindows(p.windows) {
		if w.rule != last {
			last, ofRule = w.rule, min(maxOfRule, left)
		} else if ofRule < 0 {
			continue // it has the whole text
		}
		all := w.rule.compiled().re.FindAllStringIndex(text[w.from:w.to], ofRule+1)
		if len(all) > 0 && w.rule.generic && lenient() {
			continue
		}
		for _, at := range all {
			if ofRule--; ofRule < 0 {
				matches = append(matches, match{rule: w.rule, end: len(text), whole: [2]int{0, len(text)}, secret: text})
				break
			}
			left--
			if m, ok := s.judge(w.rule, path, text, w.from+at[0], w.from+at[1]); ok {
				if end := w.from + at[1]; end == w.to && runEnd(text, end) > end {
					m.end = runEnd(text, end) // the window cut it
				}
				matches = append(matches, m)
			}
		}
	}
	return dropGeneric(text, matches)
}

// runEnd returns where a run of characters of tokens ends that goes on at text[i:].
func runEnd(text string, i int) int {
	for i < len(text) && inToken[text[i]] {
		i++
	}
	return i
}

var inToken = bytesOf("+/=_-.")

// keyword opens the windows of a rule whose keyword is at text[start:].
func (p *pass) keyword(r *rule, start int) {
	if i := p.last[r.order]; i > 0 && p.windows[i-1].from == 0 && p.windows[i-1].to == len(p.text) {
		return
	}
	if r.Path != "" && !r.path(p.path) {
		return
	}
	c := r.compiled()
	if c.anchors == nil {
		p.open(window{rule: r, to: len(p.text)})
		return
	}
	for i := range c.anchors {
		a := &c.anchors[i]
		for _, offset := range a.offsets {
			at := start - offset
			if at < 0 {
				continue
			}
			look := maxRun
			if p.looked > maxCost*len(p.text) {
				look = maxLook
			}
			ok, looked := a.possible(p.text, at, look)
			if p.looked += looked; ok {
				from, to := a.window(p.text, at)
				p.open(window{r, from, to, to - from})
			}
		}
	}
}

// open adds a window, or makes the last of the rule larger.
func (p *pass) open(w window) {
	i := p.last[w.rule.order] - 1
	if i < 0 || w.from > p.windows[i].to || w.to < p.windows[i].from {
		p.windows = append(p.windows, w)
		p.last[w.rule.order] = len(p.windows)
		return
	}
	last := &p.windows[i]
	last.from, last.to, last.cost = min(last.from, w.from), max(last.to, w.to), last.cost+w.cost
	if last.cost > maxCost*len(p.text) {
		last.from, last.to = 0, len(p.text)
	}
}

// mergeWindows joins the windows of a rule that overlap, so that no place is
// searched twice and a match is not cut where a window ends.
func mergeWindows(list []window) []window {
	slices.SortFunc(list, func(a, b window) int {
		return cmp.Or(cmp.Compare(a.rule.order, b.rule.order), cmp.Compare(a.from, b.from))
	})
	n := 0
	for _, w := range list[1:] {
		if last := &list[n]; w.rule == last.rule && w.from <= last.to {
			last.to = max(last.to, w.to)
			continue
		}
		n++
		list[n] = w
	}
	return list[:n+1]
}

// maxAfter is how much of a match can follow the secret: a quote, a line break as an escape. A
// match with more behind the secret has its secret group in the middle, and is redacted whole.
const maxAfter = 2

// judge decides on one match of a rule's expression: which part of it is the secret, and whether it
// is one. The steps are those of the library. Its remark "gitleaks:allow" on a line has no meaning
// here: the sender of a secret could send that too.
func (s *Scanner) judge(r *rule, path, text string, start, end int) (match, bool) {
	for start < end && text[start] == '\n' {
		start++
	}
	for start < end && text[end-1] == '\n' {
		end--
	}
	if start == end {
		return match{}, false
	}
	m := match{rule: r, start: start, end: end, whole: [2]int{start, end}, secret: text[start:end]}
	if from, to := group(r.compiled().re.FindStringSubmatchIndex(m.secret), r.SecretGroup); to > from {
		if len(m.secret)-to <= maxAfter {
			m.start, m.end = start+from, start+to
		}
		m.secret = m.secret[from:to]
	}
	if r.Entropy != 0 && entropy(m.secret) <= r.Entropy {
		return m, false
	}
	line := lineOf(text, start, end)
	if !r.custom && s.global.allows(path, m.secret, text[start:end], line) {
		return m, false
	}
	for _, a := range r.allowlists {
		if a.allows(path, m.secret, text[start:end], line) {
			return m, false
		}
	}
	return m, true
}

// group returns where a group is, or the first that took something.
func group(index []int, n int) (from, to int) {
	if n > 0 && len(index) > 2*n+1 {
		return index[2*n], index[2*n+1]
	}
	for i := 2; i+1 < len(index); i += 2 {
		if index[i+1] > index[i] {
			return index[i], index[i+1]
		}
	}
	return 0, 0
}

// maxLine bounds what is taken for a line on each side of a match. The library
// takes lines as they are; but a document can be one line, and then a word far away
// in it would say what a match is.
const maxLine = 512

// lineOf returns the lines that contain text[start:end].
func lineOf(text string, start, end int) string {
	before, after := text[max(0, start-maxLine):start], text[end:min(len(text), end+maxLine)]
	start -= len(before) - strings.LastIndexByte(before, '\n') - 1
	if i := strings.IndexByte(after, '\n'); i >= 0 {
		after = after[:i]
	}
	return text[start : end+len(after)]
}

// dropGeneric leaves out generic matches whose secret is in what another rule
// found on the same line.
func dropGeneric(text string, all []match) []match {
	generic := func(m match) bool { return m.rule.generic }
	if !slices.ContainsFunc(all, generic) || len(all) == 1 {
		return all
	}
	var breaks []int
	for i := range len(text) {
		if text[i] == '\n' {
			breaks = append(breaks, i)
		}
	}
	line := func(m match) int { n, _ := slices.BinarySearch(breaks, m.whole[0]); return n }
	certain := map[int][]string{} // by line
	for _, m := range all {
		if n := line(m); !generic(m) && !slices.Contains(certain[n], m.secret) {
			certain[n] = append(certain[n], m.secret)
		}
	}
	return slices.DeleteFunc(all, func(m match) bool {
		return generic(m) && slices.ContainsFunc(certain[line(m)], func(secret string) bool { return strings.Contains(secret, m.secret) })
	})
}
