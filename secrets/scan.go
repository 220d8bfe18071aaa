package secrets

import (
	"slices"
	"sync"
)

// scan finds all that is to be found in a text that is encoded depth times.
func (s *Scanner) scan(path, text string, depth int) []match {
	all := s.search(path, text)
	for _, c := range s.checks {
		if !s.skip[c.order] {
			all = c.find(all, c.rule, text)
		}
	}
	if s.decode && depth < maxDepth {
		all = s.decoded(s.unescaped(all, path, text, depth), path, text, depth)
	}
	return slices.DeleteFunc(all, func(m match) bool { return s.allowed(path, m) || harmlessMatch(text, m) })
}

var unescapers = sync.Pool{New: func() any { return new(unescaper) }}

// unescaped appends matches that have an escape in them or next to them.
func (s *Scanner) unescaped(all []match, path, text string, depth int) []match {
	u := unescapers.Get().(*unescaper)
	defer unescapers.Put(u)
	defer func() { u.source = "" }()
	plain := all
	for _, marks := range [...]string{escapes, lineEnds} {
		u.source, u.marks, u.next = text, marks, [2]int{-1, -1}
		for e, ok := u.find(0); ok; {
			e, ok = u.read(e)
			for _, m := range s.scan(path, string(u.text), depth+1) {
				if at, ok := u.place(m, plain); ok {
					all = append(all, at)
				}
			}
		}
	}
	return all
}

// bufferPool holds what segments decode to.
var bufferPool = sync.Pool{New: func() any { return new([]byte) }}

// decoded appends a match for each encoded segment in which there is a secret: the
// segment as a whole, for a part of it cannot be told apart.
func (s *Scanner) decoded(all []match, path, text string, depth int) []match {
	buffer := bufferPool.Get().(*[]byte)
	defer bufferPool.Put(buffer)
	segments(text, func(start, end int, plain []byte) {
		inner := s.scan(path, string(plain), depth+1)
		if len(inner) == 0 {
			return
		}
		i := max(0, slices.IndexFunc(inner, func(m match) bool { return !s.report[m.rule.order] }))
		all = append(all, match{rule: inner[i].rule, start: start, end: end, whole: [2]int{start, end}, secret: inner[i].secret})
	}, buffer)
	return all
}
