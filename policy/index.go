package policy

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/internal/match"
)

// A subject is somebody to whom something is granted. It has a kind of its own
// for ids and roles, so that a principal whose id reads like a role is none. The name
// begins with TENANT/ if it is somebody of a tenant, and with */ for any tenant.
type subject struct{ kind, name string }

var (
	everybody = subject{kind: "*"}             // of no tenant
	anybody   = subject{kind: "*", name: "*/"} // of any tenant, but not of none
)

func parseSubject(to string) subject {
	if tenant, all := strings.CutSuffix(to, "*"); all && (tenant == "" || strings.HasSuffix(tenant, "/")) {
		return subject{"*", tenant}
	}
	if role, ok := strings.CutPrefix(to, "role:"); ok {
		return subject{"role", role}
	}
	return subject{"id", to}
}

// index finds the grants for a name without looking at the others.
type index map[subject]*granted

// kinds are the kinds of what is granted by name.
var kinds = [...]string{"tools", "always", "resources", "prompts", "skills", "methods", "agents"}

// granted is what one subject is granted.
type granted struct {
	kinds   map[string]*matcher
	servers map[string][]*entry
	groups  map[string][]*entry
}

// entry is one pattern of one grant.
type entry struct {
	order  int // in the file
	reason *ast.Term
	except *matcher
	asks   []string
}

// matcher holds patterns: literals, and beginnings by their length.
type matcher struct {
	exact   map[string][]*entry
	prefix  map[string][]*entry
	lengths []int // of the keys of prefix, sorted, each once
}

func newMatcher() *matcher {
	return &matcher{exact: map[string][]*entry{}, prefix: map[string][]*entry{}}
}

func (m *matcher) add(p string, e *entry) {
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
func (m *matcher) each(name string, f func(*entry) bool) {
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

func (m *matcher) matches(name string) (found bool) {
	m.each(name, func(*entry) bool { found = true; return false })
	return found
}

func newIndex(grants []Grant) index {
	ix := index{}
	order := 0
	for _, g := range grants {
		except := newMatcher()
		for _, pattern := range g.Except {
			except.add(pattern, nil)
		}
		for _, to := range g.To {
			who := ix.at(parseSubject(to))
			next := func(what string) *entry {
				order++
				return &entry{order, ast.StringTerm(what + " is granted to " + to), except, g.Asks}
			}
			for i, patterns := range [...][]string{g.Tools, g.Always, g.Resources, g.Prompts, g.Skills, g.Methods, g.Agents} {
				for _, pattern := range patterns {
					who.kinds[kinds[i]].add(pattern, next(pattern))
				}
			}
			for _, server := range g.Servers {
				who.servers[server] = append(who.servers[server], next("server "+server))
			}
			for _, group := range g.Groups {
				who.groups[group] = append(who.groups[group], next("group "+group))
			}
		}
	}
	return ix
}

func (ix index) at(s subject) *granted {
	if ix[s] == nil {
		ix[s] = &granted{kinds: map[string]*matcher{}, servers: map[string][]*entry{}, groups: map[string][]*entry{}}
		for _, kind := range kinds {
			ix[s].kinds[kind] = newMatcher()
		}
	}
	return ix[s]
}

// each calls f with the entries for s that match name, and do not except it.
func (ix index) each(s subject, kind, name string, f func(*entry)) {
	g := ix[s]
	if g == nil {
		return
	}
	consider := func(e *entry) bool {
		if !e.except.matches(name) {
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
func (m *matcher) covers(text string) bool {
	for prefix := range m.prefix {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
