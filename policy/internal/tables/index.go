package tables

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/internal/match"
)

// An Index finds the entries of a list for a name without looking at the others.
type Index map[Subject]*Row

// kinds are the kinds of what is listed by name.
var kinds = [...]string{"tools", "always", "resources", "prompts", "skills", "methods", "agents"}

// A Row is what a list has for one subject.
type Row struct {
	kinds   map[string]*Matcher
	servers map[string][]*Entry
	groups  map[string][]*Entry
}

// An Entry is one pattern of one entry of a list.
type Entry struct {
	Order  int // in the file
	Reason *ast.Term
	Except *Matcher
	Asks   []string // what a server may ask of the client meanwhile
}

// A Matcher holds patterns: literals, and beginnings by their length.
type Matcher struct {
	exact   map[string][]*Entry
	prefix  map[string][]*Entry
	lengths []int // of the keys of prefix, sorted, each once
}

// NewMatcher returns a matcher of patterns that have no entries.
func NewMatcher(patterns ...string) *Matcher {
	m := &Matcher{exact: map[string][]*Entry{}, prefix: map[string][]*Entry{}}
	for _, p := range patterns {
		m.add(p, nil)
	}
	return m
}

func (m *Matcher) add(p string, e *Entry) {
	prefix, open := match.Pattern(p).Cut()
	if !open {
		m.exact[p] = append(m.exact[p], e)
		return
	}
	m.prefix[prefix] = append(m.prefix[prefix], e)
	if i, found := slices.BinarySearch(m.lengths, len(prefix)); !found {
		m.lengths = slices.Insert(m.lengths, i, len(prefix))
	}
}

// each calls f with the entries whose pattern matches name, until it returns
// false.
func (m *Matcher) each(name string, f func(*Entry) bool) {
	for _, e := range m.exact[name] {
		if !f(e) {
			return
		}
	}
	for _, n := range m.lengths {
		if n > len(name) {
			return
		}
		for _, e := range m.prefix[name[:n]] {
			if !f(e) {
				return
			}
		}
	}
}

func (m *Matcher) matches(name string) (found bool) {
	m.each(name, func(*Entry) bool { found = true; return false })
	return found
}

// Row returns the row of those whom a list names, and makes one if there is none.
func (ix Index) Row(to string) *Row {
	s := ParseSubject(to)
	if ix[s] == nil {
		ix[s] = &Row{kinds: map[string]*Matcher{}, servers: map[string][]*Entry{}, groups: map[string][]*Entry{}}
		for _, kind := range kinds {
			ix[s].kinds[kind] = NewMatcher()
		}
	}
	return ix[s]
}

// Add has an entry stand for the names of a kind that match a pattern.
func (r *Row) Add(kind, pattern string, e *Entry) { r.kinds[kind].add(pattern, e) }

// AddServer has an entry stand for all of a server.
func (r *Row) AddServer(server string, e *Entry) { r.servers[server] = append(r.servers[server], e) }

// AddGroup has an entry stand for all in a group.
func (r *Row) AddGroup(group string, e *Entry) { r.groups[group] = append(r.groups[group], e) }

// each calls f with the entries for s that match name, and do not except it.
func (ix Index) each(s Subject, kind, name string, f func(*Entry)) {
	g := ix[s]
	if g == nil {
		return
	}
	consider := func(e *Entry) bool {
		if !e.Except.matches(name) {
			f(e)
		}
		return true
	}
	if m := g.kinds[kind]; m != nil {
		m.each(name, consider)
	}
	if kind == "tools" || kind == "prompts" {
		server, _, _ := strings.Cut(name, "__")
		for _, e := range g.servers[server] {
			consider(e)
		}
	}
}

// covers reports whether a pattern matches all that begins with text.
func (m *Matcher) covers(text string) bool {
	for prefix := range m.prefix {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
