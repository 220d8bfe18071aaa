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

// A RateLimit is one entry of the rate limits file: how much of what somebody may
// use in a time. The pack ratelimit makes the obligation rate of each entry that
// matches a call: all of them hold.
type RateLimit struct {
	// To names whose calls are limited: the id of a principal, role:NAME, or * for
	// everybody.
	To []string `json:"to"`
	// Tools are patterns of tools' names, server__tool; Servers are names of
	// servers. Without either all tools are limited, together.
	Tools   []string `json:"tools,omitempty"`
	Servers []string `json:"servers,omitempty"`
	// Except are patterns of names that this entry does not limit.
	Except []string `json:"except,omitempty"`
	// Key says for whom or what calls are counted apart, as of [gate.RateKey]. Nil
	// means for each principal.
	Key []string `json:"key,omitempty"`
	// Calls and Bytes are how many there may be in Per, Burst how many calls at
	// once after a rest. Zero sets no limit, and no other burst than Calls.
	Calls int64  `json:"calls,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	Per   string `json:"per"` // a duration of Go, such as 1m
	Burst int64  `json:"burst,omitempty"`
}

// A RateLimitError says what is wrong with one rate limit.
type RateLimitError struct {
	Index int    // of the entry, from 0
	Field string // such as tools[1]; "" for the entry as a whole
	Err   error
}

func (e *RateLimitError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("ratelimit[%d].%s", e.Index, e.Field), ".") + ": " + e.Err.Error()
}

func (e *RateLimitError) Unwrap() error { return e.Err }

// CheckRateLimits returns all that is wrong with the limits, in their order.
// [Load] refuses limits for which it returns anything.
func CheckRateLimits(limits []RateLimit) []*RateLimitError {
	var problems []*RateLimitError
	for i, l := range limits {
		check := func(field string, values []string, f func(string) error) {
			for j, v := range values {
				if err := f(v); err != nil {
					problems = append(problems, &RateLimitError{i, fmt.Sprintf("%s[%d]", field, j), err})
				}
			}
		}
		check("to", l.To, checkTo)
		check("tools", l.Tools, checkTool)
		check("servers", l.Servers, checkServer)
		check("except", l.Except, checkPattern)
		if len(l.To) == 0 {
			problems = append(problems, &RateLimitError{i, "to", errors.New("missing; name principals, role:NAME, or \"*\"")})
		}
		if _, err := rate(l.rate().Value); err != nil {
			problems = append(problems, &RateLimitError{i, "", err})
		}
	}
	return problems
}

// rate returns the obligation of the entry, without its type. What it limits is
// part of its name, so that entries which say the same of others have buckets of
// their own.
func (l RateLimit) rate() *ast.Term {
	about, err := json.Marshal(RateLimit{To: l.To, Tools: l.Tools, Servers: l.Servers, Except: l.Except})
	if err != nil {
		panic(err) // strings always marshal
	}
	key := l.Key
	if key == nil {
		key = []string{string(gate.ByPrincipal)}
	}
	rate := [][2]*ast.Term{
		pair("name", ast.StringTerm(hash(about)[:16])), pair("key", stringArray(key)), pair("per", ast.StringTerm(l.Per)),
	}
	for _, n := range []struct {
		name string
		n    int64
	}{{"calls", l.Calls}, {"bytes", l.Bytes}, {"burst", l.Burst}} {
		if n.n != 0 {
			rate = append(rate, pair(n.name, ast.IntNumberTerm(int(n.n))))
		}
	}
	return ast.ObjectTerm(rate...)
}

// newRateIndex returns the index of limits by what they limit.
func newRateIndex(limits []RateLimit) index {
	ix := index{}
	for i, l := range limits {
		except := newMatcher()
		for _, pattern := range l.Except {
			except.add(pattern, nil)
		}
		one := &entry{i, l.rate(), except, nil}
		tools := l.Tools
		if len(l.Tools)+len(l.Servers) == 0 {
			tools = []string{"*"}
		}
		for _, to := range l.To {
			who := ix.at(parseSubject(to))
			for _, pattern := range tools {
				who.kinds["tools"].add(pattern, one)
			}
			for _, server := range l.Servers {
				who.servers[server] = append(who.servers[server], one)
			}
		}
	}
	return ix
}

// rates returns the rates for a call, in the order of the file.
func (ix index) rates(tool, id string, roles []string) []*ast.Term {
	var found []*entry
	add := func(e *entry) { found = append(found, e) }
	ix.each(everybody, "tools", tool, add)
	ix.each(subject{"id", id}, "tools", tool, add)
	for _, role := range roles {
		ix.each(subject{"role", role}, "tools", tool, add)
	}
	slices.SortFunc(found, func(a, b *entry) int { return a.order - b.order })
	var rates []*ast.Term
	for _, e := range slices.Compact(found) {
		rates = append(rates, e.reason)
	}
	return rates
}

// ratesDecl declares the built-in function by which the pack ratelimit asks:
//
//	wasmgate.rates(limits, tool, id, roles) array of rates
//
// As with [grantedDecl] the limits are an argument for the sake of tests.
var ratesDecl = &rego.Function{
	Name: "wasmgate.rates",
	Decl: types.NewFunction(types.Args(
		types.NewArray(nil, types.A), types.S, types.S, types.NewArray(nil, types.S),
	), types.NewArray(nil, types.A)),
}

// ratesBuiltin looks into ix if it is asked about list, from which ix was made,
// and else into an index made for the occasion.
func ratesBuiltin(list ast.Value, ix index) func(*rego.Rego) {
	return rego.FunctionDyn(ratesDecl, func(_ rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
		ix := ix
		if args[0].Value != list {
			limits, err := decodeRateLimits(args[0].Value)
			if err != nil {
				return nil, err
			}
			ix = newRateIndex(limits)
		}
		tool, ok1 := args[1].Value.(ast.String)
		id, ok2 := args[2].Value.(ast.String)
		array, ok3 := args[3].Value.(*ast.Array)
		if !ok1 || !ok2 || !ok3 {
			return nil, errors.New("wasmgate.rates: expected (limits, tool, id, roles)")
		}
		var roles []string
		array.Foreach(func(t *ast.Term) {
			if role, ok := t.Value.(ast.String); ok {
				roles = append(roles, string(role))
			}
		})
		return ast.ArrayTerm(ix.rates(string(tool), string(id), roles)...), nil
	})
}

func decodeRateLimits(v ast.Value) ([]RateLimit, error) {
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
	var limits []RateLimit
	if err := d.Decode(&limits); err != nil {
		return nil, fmt.Errorf("data.ratelimit: %w", err)
	}
	if problems := CheckRateLimits(limits); problems != nil {
		return nil, fmt.Errorf("data.%w", problems[0])
	}
	return limits, nil
}
