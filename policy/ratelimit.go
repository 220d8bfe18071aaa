package policy

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/policy/internal/input"
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

// CheckRateLimits returns all that is wrong with the limits, in their order.
// [Load] refuses limits for which it returns anything.
func CheckRateLimits(limits []RateLimit) []*EntryError {
	var problems []*EntryError
	for i, l := range limits {
		wrong := func(field string, err error) {
			problems = append(problems, &EntryError{fmt.Sprintf("ratelimit[%d]", i), field, err})
		}
		check := checkEach(wrong)
		check("to", l.To, checkTo)
		check("tools", l.Tools, checkTool)
		check("servers", l.Servers, checkServer)
		check("except", l.Except, checkPattern)
		if len(l.To) == 0 {
			wrong("to", errToNobody)
		}
		if _, err := rate(l.rate().Value); err != nil {
			wrong("", err)
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
		key = []string{string(obligation.ByPrincipal)}
	}
	rate := [][2]*ast.Term{
		pair("name", ast.StringTerm(hash(about)[:16])), pair("key", input.Texts(key)), pair("per", ast.StringTerm(l.Per)),
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

// rateLookup is the function by which the pack ratelimit asks for the rates of a call.
var rateLookup = lookup{declare("wasmgate.rates", types.NewArray(nil, types.A), types.S), "(limits, tool, id, roles)", readRateLimits, rates}

// rates answers with the rates that hold, in the order of the file.
func rates(ix index, who []subject, asked []*ast.Term) (*ast.Term, bool) {
	tool, ok := asked[0].Value.(ast.String)
	var found []*entry
	for _, s := range who {
		ix.each(s, "tools", string(tool), func(e *entry) { found = append(found, e) })
	}
	slices.SortFunc(found, func(a, b *entry) int { return a.order - b.order })
	var all []*ast.Term
	for _, e := range slices.Compact(found) {
		all = append(all, e.reason)
	}
	return ast.ArrayTerm(all...), ok
}

// readRateLimits returns an index of limits that a test has put in the place of
// data.ratelimit.
func readRateLimits(list ast.Value) (index, error) {
	limits, err := entriesOf[RateLimit]("ratelimit", list)
	if err != nil {
		return nil, err
	}
	if problems := CheckRateLimits(limits); problems != nil {
		return nil, fmt.Errorf("data.%w", problems[0])
	}
	return newRateIndex(limits), nil
}
