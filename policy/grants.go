package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/wasmgate/wasmgate/gate"
)

// A Grant is one entry of the grants file: who gets what. A pattern is a
// literal, or a literal with * at its end, which stands for anything. The pack
// grants allows what grants say.
type Grant struct {
	// To names who: the id of a principal, role:NAME, or * for everybody.
	To []string `json:"to"`
	// Tools are patterns of tools' names, server__tool; Servers are names of
	// servers, all of whose tools, prompts and resources are granted.
	Tools   []string `json:"tools,omitempty"`
	Servers []string `json:"servers,omitempty"`
	// Groups are names of groups: what is in one is granted as what a server has is.
	Groups []string `json:"groups,omitempty"`
	// Except are patterns of names, and of URIs, that this grant does not grant.
	Except []string `json:"except,omitempty"`
	// Always are patterns of names of tools whose calls a person has approved once
	// and for all: the pack approve does not ask about them. They are not granted by
	// that.
	Always []string `json:"always,omitempty"`
	// Resources are patterns of URIs, Prompts of names, server__prompt.
	Resources []string `json:"resources,omitempty"`
	Prompts   []string `json:"prompts,omitempty"`
	// Asks say what servers may ask of the client while it uses what this grant
	// grants, beside forms: roots, sampling, secrets (forms that ask for one).
	Asks []string `json:"asks,omitempty"`
}

// A GrantError says what is wrong with one grant.
type GrantError struct {
	Index int    // of the grant, from 0
	Field string // such as tools[1]; "" for the grant as a whole
	Err   error
}

func (e *GrantError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("grants[%d].%s", e.Index, e.Field), ".") + ": " + e.Err.Error()
}

func (e *GrantError) Unwrap() error { return e.Err }

// CheckGrants returns all that is wrong with the grants, in their order.
// [Load] refuses grants for which it returns anything.
func CheckGrants(grants []Grant) []*GrantError {
	var problems []*GrantError
	for i, g := range grants {
		check := func(field string, values []string, f func(string) error) {
			for j, v := range values {
				if err := f(v); err != nil {
					problems = append(problems, &GrantError{i, fmt.Sprintf("%s[%d]", field, j), err})
				}
			}
		}
		check("to", g.To, checkTo)
		check("tools", g.Tools, checkTool)
		check("servers", g.Servers, checkServer)
		check("groups", g.Groups, checkGroup)
		check("except", g.Except, checkPattern)
		check("always", g.Always, checkTool)
		check("resources", g.Resources, checkPattern)
		check("prompts", g.Prompts, checkPattern)
		check("asks", g.Asks, checkAsk)
		if len(g.To) == 0 {
			problems = append(problems, &GrantError{i, "to", errors.New("missing; name principals, role:NAME, or \"*\"")})
		}
		if len(g.Tools)+len(g.Servers)+len(g.Groups)+len(g.Always)+len(g.Resources)+len(g.Prompts) == 0 {
			problems = append(problems, &GrantError{i, "", errors.New("grants nothing; add tools, servers, groups, resources or prompts")})
		}
	}
	return problems
}

func checkTo(to string) error {
	if to == "" || to == "role:" {
		return fmt.Errorf("%q names nobody; expected the id of a principal, role:NAME, or *", to)
	}
	return nil
}

func checkPattern(pattern string) error {
	if pattern == "" {
		return errors.New("the pattern is empty")
	}
	if i := strings.IndexByte(pattern, '*'); i >= 0 && i < len(pattern)-1 {
		return fmt.Errorf("pattern %q: a * can stand only at the end", pattern)
	}
	return nil
}

func checkTool(pattern string) error {
	if err := checkPattern(pattern); err != nil {
		return err
	}
	literal, open := strings.CutSuffix(pattern, "*")
	switch {
	case !open:
	case literal == "":
		return nil // all tools
	case strings.Contains(literal, "__"):
		literal += "x"
	default: // the beginning of a server's name
		literal = strings.TrimSuffix(literal, "_") + "__x"
	}
	if _, err := gate.ParseToolName(literal); err != nil {
		return fmt.Errorf("pattern %q matches no tool; expected server__tool, or its beginning and *", pattern)
	}
	return nil
}

func checkServer(server string) error {
	_, err := gate.NewToolName(server, "x")
	return err
}

// A subject is somebody to whom something is granted. It has a kind of its own
// for ids and roles, so that a principal whose id reads like a role is none.
type subject struct{ kind, name string }

var everybody = subject{kind: "*"}

func parseSubject(to string) subject {
	if to == "*" {
		return everybody
	}
	if role, ok := strings.CutPrefix(to, "role:"); ok {
		return subject{"role", role}
	}
	return subject{"id", to}
}

// index finds the grants for a name without looking at the others.
type index map[subject]*granted

// kinds are the kinds of what is granted by name.
var kinds = [...]string{"tools", "always", "resources", "prompts"}

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

func (m *matcher) add(pattern string, e *entry) {
	prefix, open := strings.CutSuffix(pattern, "*")
	if !open {
		m.exact[pattern] = append(m.exact[pattern], e)
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
			for i, patterns := range [...][]string{g.Tools, g.Always, g.Resources, g.Prompts} {
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

// find returns the first of the grants to s, in the order of the file, that
// grants name; or best, if that comes before.
func (ix index) find(s subject, kind, name string, best *entry) *entry {
	ix.each(s, kind, name, func(e *entry) {
		if best == nil || e.order < best.order {
			best = e
		}
	})
	return best
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

// grantedDecl declares the built-in function by which the pack grants asks:
//
//	wasmgate.granted(grants, kind, name, id, roles) reason
//
// The grants are an argument, so that a test can put others in their place.
// A built-in and not data, because finding the prefixes of a name in Rego costs
// more than the rest of the decision.
var grantedDecl = &rego.Function{
	Name: "wasmgate.granted",
	Decl: types.NewFunction(types.Args(
		types.NewArray(nil, types.A), types.S, types.S, types.S, types.NewArray(nil, types.S),
	), types.S),
}

// grantedBuiltin looks into ix if it is asked about list, from which ix was
// made, and else into an index made for the occasion.
func grantedBuiltin(list ast.Value, ix index) func(*rego.Rego) {
	return rego.FunctionDyn(grantedDecl, func(_ rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
		ix, err := indexOf(args[0].Value, list, ix)
		if err != nil {
			return nil, err
		}
		kind, ok1 := args[1].Value.(ast.String)
		name, ok2 := args[2].Value.(ast.String)
		id, ok3 := args[3].Value.(ast.String)
		roles, ok4 := args[4].Value.(*ast.Array)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return nil, errors.New("wasmgate.granted: expected (grants, kind, name, id, roles)")
		}
		best := ix.find(everybody, string(kind), string(name), nil)
		best = ix.find(subject{"id", string(id)}, string(kind), string(name), best)
		for i := range roles.Len() {
			if role, ok := roles.Elem(i).Value.(ast.String); ok {
				best = ix.find(subject{"role", string(role)}, string(kind), string(name), best)
			}
		}
		if best == nil {
			return nil, nil // undefined
		}
		return best.reason, nil
	})
}

// indexOf returns ix if grants is the list that it was made from, and else an index
// made for the occasion.
func indexOf(grants, list ast.Value, ix index) (index, error) {
	if grants == list {
		return ix, nil
	}
	decoded, err := decodeGrants(grants)
	if err != nil {
		return nil, err
	}
	return newIndex(decoded), nil
}

func decodeGrants(v ast.Value) ([]Grant, error) {
	x, err := ast.JSON(v)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var grants []Grant
	if err := d.Decode(&grants); err != nil {
		return nil, fmt.Errorf("data.grants: %w", err)
	}
	if problems := CheckGrants(grants); problems != nil {
		return nil, fmt.Errorf("data.%w", problems[0])
	}
	return grants, nil
}
