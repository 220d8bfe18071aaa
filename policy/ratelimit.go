package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/policy/internal/decision"
	"github.com/wasmgate/wasmgate/policy/internal/input"
	"github.com/wasmgate/wasmgate/policy/internal/tables"
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
		check("to", l.To, tables.CheckSubject)
		check("tools", l.Tools, checkTool)
		check("servers", l.Servers, checkServer)
		check("except", l.Except, checkPattern)
		if len(l.To) == 0 {
			wrong("to", tables.ErrNobody)
		}
		if _, err := decision.Rate(l.rate().Value); err != nil {
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
		input.Pair("name", ast.StringTerm(hash(about)[:16])), input.Pair("key", input.Texts(key)), input.Pair("per", ast.StringTerm(l.Per)),
	}
	for _, n := range []struct {
		name string
		n    int64
	}{{"calls", l.Calls}, {"bytes", l.Bytes}, {"burst", l.Burst}} {
		if n.n != 0 {
			rate = append(rate, input.Pair(n.name, ast.IntNumberTerm(int(n.n))))
		}
	}
	return ast.ObjectTerm(rate...)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// newRateIndex returns the index of limits by what they limit.
func newRateIndex(limits []RateLimit) tables.Index {
	ix := tables.Index{}
	for i, l := range limits {
		one := &tables.Entry{Order: i, Reason: l.rate(), Except: tables.NewMatcher(l.Except...)}
		patterns := l.Tools
		if len(l.Tools)+len(l.Servers) == 0 {
			patterns = []string{"*"}
		}
		for _, to := range l.To {
			row := ix.Row(to)
			for _, pattern := range patterns {
				row.Add("tools", pattern, one)
			}
			for _, server := range l.Servers {
				row.AddServer(server, one)
			}
		}
	}
	return ix
}

// readRateLimits returns an index of limits that a test has put in the place of
// data.ratelimit.
func readRateLimits(list ast.Value) (tables.Index, error) {
	limits, err := tables.Entries[RateLimit]("ratelimit", list)
	if err != nil {
		return nil, err
	}
	if problems := CheckRateLimits(limits); problems != nil {
		return nil, fmt.Errorf("data.%w", problems[0])
	}
	return newRateIndex(limits), nil
}
