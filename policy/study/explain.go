package study

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
	"github.com/wasmgate/wasmgate/policy/internal/owned"
)

// An Explanation says why a call is decided as it is.
type Explanation struct {
	// Effect is the decision, or "" if it depends on what is not known.
	Effect gate.Effect `json:"effect"`
	// Error says why there is no decision. It denies.
	Error string `json:"error,omitempty"`
	// Decided are the rules that decide: those of deny, or else of ask, or else
	// of allow; or those that cannot be evaluated. None means that nothing allows
	// the call.
	Decided []Explained `json:"decided"`
	// Nearly are the rules of allow that fail, the one that held longest first, without
	// those that are about something else from the start.
	Nearly []Explained `json:"nearly"`
	// Open are the rules that may hold or not, for all that is known.
	Open []Explained `json:"open"`
	// Remedy is what would allow the call, if there is such a thing: a command, or what
	// is to be written into the grants file.
	Remedy string `json:"remedy,omitempty"`
	// Otherwise is what would be decided if no rule of deny held; nil if none does. No
	// grant helps against those that do.
	Otherwise *Alternative `json:"otherwise,omitempty"`
	// Revision is that of the policy that explains.
	Revision string `json:"policy_revision"`
}

// An Alternative is what would be decided under another policy.
type Alternative struct {
	Effect gate.Effect `json:"effect"` // as of [Explanation]
	Remedy string      `json:"remedy,omitempty"`
}

// Explained is what came of one rule.
type Explained struct {
	Set    string `json:"set"` // allow, ask or deny
	File   string `json:"file"`
	Line   int    `json:"line"`
	Reason string `json:"reason,omitempty"` // that the rule gives, if it holds
	// Condition is the first that fails, or the first that is open.
	Condition *Condition `json:"condition,omitempty"`
	// Holds are the conditions of a rule of deny that holds. It takes one that does not
	// to let the call pass.
	Holds []Condition `json:"holds,omitempty"`
	// Unknown says what the rule depends on that is not known.
	Unknown []string `json:"unknown,omitempty"`

	held int         // conditions before the one that fails
	body []Condition // all of them
}

// Condition is a part of a rule.
type Condition struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
	// Error says that the condition cannot be evaluated, which denies the call.
	Error string `json:"error,omitempty"`
}

// maxNearly bounds the rules that are reported to have nearly allowed a call.
const maxNearly = 20

// explainTime bounds an explanation. It evaluates each rule once for each of its
// conditions.
const explainTime = 30 * time.Second

// A Case is a call that is to be explained.
type Case struct {
	Query gate.Query
	// Unknown names what is not known of the query: parts of the input, such as
	// input.arguments, and how to say that they are missing.
	Unknown map[string]string
	// Decision is how it was decided, if that is known. The same policy decides
	// the same again, so it tells of the unknown parts.
	Decision gate.Decision
}

// Explain says why a call is decided as it is.
func Explain(ctx context.Context, e *policy.Engine, call Case) (Explanation, error) {
	return explain(ctx, engine.Of(e), call)
}

func explain(ctx context.Context, e *engine.Engine, call Case) (x Explanation, err error) {
	defer engine.Recover(&err, func() { x = Explanation{} })
	q, err := e.Checked(call.Query)
	if err != nil {
		return Explanation{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	c, err := newEvaluator(ctx, e, q, call)
	if err != nil {
		return Explanation{}, err
	}
	x.Revision = e.Revision
	hold, broken := map[string][]Explained{}, map[string][]Explained{}
	for _, set := range []string{"deny", "ask", "allow"} {
		if err := c.explainSet(&x, set, hold, broken); err != nil {
			return Explanation{}, err
		}
	}
	x.settle(c.decision, hold)
	without := Explanation{Open: slices.Clone(x.Open)}
	x.conclude(hold, broken)
	switch {
	case x.Effect == gate.Deny && x.Decided == nil:
		x.Remedy = e.Remedy(q)
	case x.Effect == gate.Deny && x.Error == "":
		x.Otherwise = without.otherwise(hold, broken)
		if x.Otherwise.Effect == gate.Deny && without.Error == "" {
			x.Otherwise.Remedy = e.Remedy(q)
		}
	}
	slices.SortStableFunc(x.Nearly, func(a, b Explained) int { return cmp.Compare(b.held, a.held) })
	x.Nearly = x.Nearly[:min(len(x.Nearly), maxNearly)]
	return x, nil
}

// declarations is the file whose rules only say that the sets exist.
const declarations = owned.PackFolder + "decision.rego"

// settle takes what is open for what it was, as far as the decision that was taken tells
// that: the open rules of allow where a person was asked, and the only open one of deny
// if the decision has reasons that no other rule gives, for rules may make their reasons
// of what is not recorded.
func (x *Explanation) settle(d gate.Decision, hold map[string][]Explained) {
	if d.Effect == gate.Ask && hold["allow"] == nil { // one of these held, or no one would have been asked
		hold["allow"] = slices.DeleteFunc(slices.Clone(x.Open), func(o Explained) bool { return o.Set != "allow" })
	}
	deny := func(o Explained) bool { return o.Set == string(gate.Deny) }
	at := slices.IndexFunc(x.Open, deny)
	left := slices.DeleteFunc(slices.Clone(d.Reasons), func(reason string) bool {
		return slices.ContainsFunc(hold[string(gate.Deny)], func(o Explained) bool { return o.Reason == reason })
	})
	if d.Effect != gate.Deny || at < 0 || len(left) == 0 || slices.ContainsFunc(x.Open[at+1:], deny) {
		return
	}
	one := x.Open[at]
	hold[one.Set] = append(hold[one.Set], Explained{Set: one.Set, File: one.File, Line: one.Line, Reason: strings.Join(left, "; "), Holds: one.body})
	x.Open = slices.Delete(x.Open, at, at+1)
}

// conclude makes the decision of the rules that hold and of those that break, as
// decision.rego does, unless an open rule could change it.
func (x *Explanation) conclude(hold, broken map[string][]Explained) {
	may := func(set string) bool {
		return slices.ContainsFunc(x.Open, func(o Explained) bool { return o.Set == set })
	}
	decided := "" // by the rules of this set
	for _, set := range []string{"deny", "allow", "ask"} {
		switch {
		case broken[set] != nil:
			x.Effect, x.Decided, x.Error = gate.Deny, broken[set], broken[set][0].Condition.Error
			x.only(set)
			return
		case hold[set] != nil:
			decided = set
		case may(set):
			x.Decided = unlessOpen(hold)
			return
		}
		if set == "deny" && decided != "" || set == "allow" && decided == "" {
			break // the sets that follow have no say
		}
	}
	x.Effect, x.Decided = gate.Deny, nil
	if decided != "" {
		x.Effect, x.Decided = gate.Effect(decided), hold[decided]
	}
	x.only(decided)
}

// only keeps the open rules of the set that has decided: whether others hold changes
// nothing.
func (x *Explanation) only(set string) {
	x.Open = slices.DeleteFunc(x.Open, func(o Explained) bool { return o.Set != set })
}

// unlessOpen returns the rules that decide if no open one holds.
func unlessOpen(hold map[string][]Explained) []Explained {
	if hold["allow"] == nil || hold["ask"] == nil {
		return hold["allow"]
	}
	return hold["ask"]
}

// otherwise returns what x would come to without the rules of deny.
func (x *Explanation) otherwise(hold, broken map[string][]Explained) *Alternative {
	ofDeny := func(set string, _ []Explained) bool { return set == string(gate.Deny) }
	hold, broken = maps.Clone(hold), maps.Clone(broken)
	maps.DeleteFunc(hold, ofDeny)
	maps.DeleteFunc(broken, ofDeny)
	x.Open = slices.DeleteFunc(x.Open, func(o Explained) bool { return o.Set == string(gate.Deny) })
	x.conclude(hold, broken)
	return &Alternative{Effect: x.Effect}
}
