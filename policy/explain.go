package policy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/wasmgate/wasmgate/gate"
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
	// Nearly are the rules of allow and ask that fail, the one that held longest
	// first, without those that are about something else from the start.
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

// maxNearly bounds the rules that are told to have nearly allowed a call.
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
func (e *Engine) Explain(ctx context.Context, call Case) (x Explanation, err error) {
	defer recoverTo(&err, func() { x = Explanation{} })
	q, err := e.checked(call.Query)
	if err != nil {
		return Explanation{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	c := explaining{engine: e, ctx: ctx, input: e.terms.input(q), missing: call.Unknown, unknowns: []*ast.Term{}}
	if call.Decision.Revision == e.revision {
		c.decision = call.Decision
	}
	for part := range maps.Keys(call.Unknown) {
		t, err := ast.ParseTerm(part)
		if err != nil {
			return Explanation{}, fmt.Errorf("unknown part of the input: %w", err)
		}
		c.unknowns = append(c.unknowns, t)
	}
	c.nothing = c.nothingAllows(q)
	x.Revision = e.revision
	sets, broken := map[string][]Explained{}, map[string][]Explained{}
	for _, set := range []string{"deny", "ask", "allow"} {
		path := ast.MustParseRef("data.wasmgate." + set)
		indexed, err := e.compiler.RuleIndex(path).Lookup(&c)
		if err != nil {
			return Explanation{}, fmt.Errorf("policy: explain: %w", err)
		}
		for _, r := range e.compiler.GetRulesExact(path) {
			if r.Location.File == declarations {
				continue
			}
			one, outcome, err := c.rule(set, r)
			if err != nil {
				return Explanation{}, err
			}
			if outcome == breaks && !slices.Contains(indexed.Rules, r) {
				outcome, one.Condition = fails, c.excluding(r)
			}
			if outcome == isOpen {
				outcome = c.deduce(set, one.Reason)
			}
			switch outcome {
			case holds:
				if set == string(gate.Deny) {
					one.Holds = one.body
				}
				sets[set] = append(sets[set], one)
			case isOpen:
				x.Open = append(x.Open, one)
			case breaks:
				broken[set] = append(broken[set], one)
			case fails:
				if set != "deny" && one.held > 0 {
					x.Nearly = append(x.Nearly, one)
				}
			}
		}
	}
	x.settle(c.decision, sets)
	without := Explanation{Open: slices.Clone(x.Open)}
	x.conclude(sets, broken)
	switch {
	case x.Effect == gate.Deny && x.Decided == nil:
		x.Remedy = e.remedy(q)
	case x.Effect == gate.Deny && x.Error == "":
		x.Otherwise = without.otherwise(sets, broken)
		if x.Otherwise.Effect == gate.Deny && without.Error == "" {
			x.Otherwise.Remedy = e.remedy(q)
		}
	}
	slices.SortStableFunc(x.Nearly, func(a, b Explained) int { return cmp.Compare(b.held, a.held) })
	x.Nearly = x.Nearly[:min(len(x.Nearly), maxNearly)]
	return x, nil
}

// declarations is the file whose rules only say that the sets exist.
const declarations = packFolder + "decision.rego"

// settle takes the only open rule of deny for one that held, if the decision has
// reasons that no other rule gives: rules may make their reasons of what is not
// recorded.
func (x *Explanation) settle(d gate.Decision, hold map[string][]Explained) {
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
	may := func(set string) func(Explained) bool { return func(o Explained) bool { return o.Set == set } }
	for _, set := range []string{"deny", "ask", "allow"} {
		x.Decided = broken[set]
		switch {
		case x.Decided != nil:
			x.Effect, x.Error = gate.Deny, x.Decided[0].Condition.Error
		case hold[set] != nil:
			x.Effect, x.Decided = gate.Effect(set), hold[set]
		case slices.ContainsFunc(x.Open, may(set)):
			// These decide if the open rules do not hold.
			if x.Decided = hold["ask"]; x.Decided == nil {
				x.Decided = hold["allow"]
			}
			return
		default:
			continue
		}
		// Whether rules of the weaker sets hold changes nothing.
		x.Open = slices.DeleteFunc(x.Open, func(o Explained) bool { return !may(set)(o) })
		return
	}
	x.Effect = gate.Deny
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

type outcome int

const (
	fails outcome = iota
	holds
	isOpen
	breaks // cannot be evaluated
)

// explaining evaluates rules for one call.
type explaining struct {
	engine   *Engine
	ctx      context.Context
	input    ast.Value
	unknowns []*ast.Term
	missing  map[string]string
	decision gate.Decision // by the same policy; zero if unknown
	nothing  []string      // the reasons one of which is given if nothing allows
}

// nothingAllows returns what may have been the only reason if nothing allowed a query. Whether a server
// asked for a secret is in it, which is not known without the request.
func (c *explaining) nothingAllows(q gate.Query) []string {
	reasons := []string{nothingAllows(what(q), q.Call.Who.ID)}
	if q.Call.Action == gate.Elicit && q.Call.Args.IsZero() {
		reasons = append(reasons, nothingAllows(whatSecret(q), q.Call.Who.ID))
	}
	return reasons
}

// deduce returns what came of an open rule, by the decision that was taken.
func (c *explaining) deduce(set, reason string) outcome {
	d := c.decision
	switch {
	case d.Effect == "":
		return isOpen
	case d.Effect == gate.Deny && len(d.Reasons) == 1 && slices.Contains(c.nothing, d.Reasons[0]),
		d.Effect != gate.Deny && set == string(gate.Deny),
		d.Effect == gate.Allow && set == string(gate.Ask):
		return fails // the set had no member
	case set != string(d.Effect) || reason == "":
		return isOpen
	case slices.Contains(d.Reasons, reason):
		return holds
	default:
		return fails
	}
}

// rule finds out what comes of one rule, condition by condition.
func (c *explaining) rule(set string, r *ast.Rule) (Explained, outcome, error) {
	one := Explained{Set: set, File: r.Location.File, Line: r.Location.Row, body: c.conditions(r)}
	var firstOpen *Condition
	firstAt := 0
	for n := 1; n <= len(r.Body); n++ {
		result, err := c.evaluate(r, n)
		switch {
		case c.ctx.Err() != nil:
			return one, fails, fmt.Errorf("policy: explain: %w", c.ctx.Err())
		case err != nil:
			one.Condition = c.condition(r, n-1)
			one.Condition.Error = err.Error()
			if firstOpen != nil || c.mayExclude(r) { // it may not come to that
				one.Unknown = slices.Sorted(maps.Values(c.missing))
				return one, isOpen, nil
			}
			return one, breaks, nil
		case result.outcome == fails:
			one.Condition, one.held = c.condition(r, n-1), held(r, n-1)
			return one, fails, nil
		case result.outcome == isOpen && firstOpen == nil:
			firstOpen, firstAt = c.condition(r, n-1), n-1
		}
		if n == len(r.Body) {
			one.Reason, one.Unknown = result.reason, result.unknown
			if result.outcome == isOpen {
				one.Condition, one.held = firstOpen, held(r, firstAt)
				return one, isOpen, nil
			}
		}
	}
	return one, holds, nil
}

// excluding returns the condition by which the rule index passes a rule over that
// would break otherwise. Such conditions stand for themselves.
func (c *explaining) excluding(r *ast.Rule) *Condition {
	for i, e := range r.Body {
		if x, err := c.solve(ast.NewBody(e.Copy())); err == nil && x.outcome == fails {
			return c.condition(r, i)
		}
	}
	return c.condition(r, 0)
}

// mayExclude reports whether what is not known could let the rule index pass a
// rule over.
func (c *explaining) mayExclude(r *ast.Rule) (may bool) {
	ast.WalkRefs(r.Body, func(ref ast.Ref) bool {
		_, err := c.Resolve(ref)
		may = may || err != nil && ref[0].Equal(ast.InputRootDocument)
		return false
	})
	return may
}

// Resolve returns a part of the input for the rule index.
func (c *explaining) Resolve(ref ast.Ref) (ast.Value, error) {
	open := slices.ContainsFunc(c.unknowns, func(u *ast.Term) bool {
		unknown := u.Value.(ast.Ref)
		return ref.HasPrefix(unknown) || unknown.HasPrefix(ref)
	})
	if open || !ref[0].Equal(ast.InputRootDocument) {
		return nil, ast.UnknownValueErr{}
	}
	v, err := c.input.Find(ref[1:])
	if err != nil {
		return nil, nil // it is undefined
	}
	return v, nil
}

// evaluated is what is left of the beginning of a body.
type evaluated struct {
	outcome outcome
	reason  string
	unknown []string // what it depends on
}

// reasonVar is bound to the member that a rule adds.
const reasonVar = ast.Var("reason of the rule")

// evaluate evaluates the first n conditions of a rule.
func (c *explaining) evaluate(r *ast.Rule, n int) (evaluated, error) {
	body := r.Body[:n:n].Copy()
	if n == len(r.Body) && r.Head.Key != nil {
		body = append(body, ast.Equality.Expr(ast.NewTerm(reasonVar), r.Head.Key.Copy()))
	}
	return c.solve(body)
}

// solve evaluates a body as far as it is known. Partial evaluation would do for
// one of which everything is known, but does not find values that clash.
func (c *explaining) solve(body ast.Body) (evaluated, error) {
	if len(c.unknowns) == 0 {
		return c.engine.solve(c.ctx, body, c.input)
	}
	left, err := c.engine.left(c.ctx, body, c.input, c.unknowns)
	if err != nil {
		return evaluated{}, err
	}
	x := evaluated{outcome: fails}
	for _, body := range left.Queries {
		if all(expressions(body), constant) {
			return evaluated{outcome: holds, reason: reasonIn(body)}, nil
		}
		x.outcome, x.reason = isOpen, reasonIn(body)
		x.unknown = append(x.unknown, c.missingIn(body)...)
	}
	slices.Sort(x.unknown)
	x.unknown = slices.Compact(x.unknown)
	return x, nil
}

// expressions returns each expression as a body of its own.
func expressions(body ast.Body) []ast.Body {
	var list []ast.Body
	for _, e := range body {
		list = append(list, ast.NewBody(e))
	}
	return list
}

// reasonIn returns the member that a body gives, or "" if it is not known.
func reasonIn(body ast.Body) string {
	for _, e := range body {
		if !e.IsEquality() {
			continue
		}
		for i, side := range e.Operands() {
			if text, ok := e.Operand(1 - i).Value.(ast.String); ok && side.Value.Compare(reasonVar) == 0 {
				return string(text)
			}
		}
	}
	return ""
}

// missingIn says what is missing for a body to be evaluated.
func (c *explaining) missingIn(body ast.Body) []string {
	var said []string
	ast.WalkRefs(body, func(ref ast.Ref) bool {
		for part, text := range c.missing {
			if ref.HasPrefix(ast.MustParseRef(part)) {
				said = append(said, text)
			}
		}
		return false
	})
	if said == nil { // within a helper
		said = slices.Collect(maps.Values(c.missing))
	}
	return said
}

// solve evaluates a body of which everything is known.
func (e *Engine) solve(ctx context.Context, body ast.Body, input ast.Value) (evaluated, error) {
	for _, x := range body {
		// As a condition, a value that is false fails; as a query it is an answer.
		if t, ok := x.Terms.(*ast.Term); ok && !x.Negated {
			x.Terms = ast.NotEqual.Expr(t, ast.InternedTerm(false)).Terms
		}
	}
	q, err := rego.New(append(e.options[:len(e.options):len(e.options)], rego.ParsedQuery(body))...).PrepareForEval(ctx)
	if err != nil {
		return evaluated{}, err
	}
	end := &deadline{ctx: ctx, at: time.Now().Add(e.timeout)}
	rs, err := q.Eval(ctx, rego.EvalParsedInput(input), rego.EvalExternalCancel(end))
	switch {
	case end.over != nil:
		return evaluated{}, e.late(end.over)
	case err != nil:
		return evaluated{}, err
	case len(rs) == 0:
		return evaluated{outcome: fails}, nil
	}
	reason, _ := rs[0].Bindings[string(reasonVar)].(ast.String)
	return evaluated{outcome: holds, reason: string(reason)}, nil
}

// left partially evaluates a body.
func (e *Engine) left(ctx context.Context, body ast.Body, input ast.Value, unknowns []*ast.Term) (*rego.PartialQueries, error) {
	o := append(e.options[:len(e.options):len(e.options)], rego.ParsedQuery(body), rego.ParsedUnknowns(unknowns))
	q, err := rego.New(o...).PrepareForPartial(ctx)
	if err != nil {
		return nil, err
	}
	return e.remaining(ctx, q, input)
}

// condition describes the condition at index i of a rule, as it was written. The
// compiler makes several expressions of one, each with its place in the file.
func (c *explaining) condition(r *ast.Rule, i int) *Condition {
	at := r.Location // the head: its key is computed
	if loc := r.Body[i].Location; loc != nil {
		for _, e := range c.engine.writtenBody(r) {
			if e.Location.Offset <= loc.Offset {
				at = e.Location
			}
		}
	}
	one := conditionAt(at)
	if at == r.Location {
		one.Text, _, _ = strings.Cut(one.Text, " if ")
	}
	return &one
}

// conditions describes the conditions of a rule, as they were written.
func (c *explaining) conditions(r *ast.Rule) []Condition {
	var all []Condition
	for _, e := range c.engine.writtenBody(r) {
		if one := conditionAt(e.Location); one.Text != "true" && one.Line > 0 {
			all = append(all, one)
		}
	}
	return all
}

func conditionAt(at *ast.Location) Condition {
	text := strings.Join(strings.Fields(string(at.Text)), " ")
	if len(text) > maxConditionText {
		text = strings.ToValidUTF8(text[:maxConditionText], "") + " ..."
	}
	return Condition{File: at.File, Line: at.Row, Text: text}
}

// maxConditionText bounds the text of a condition, in bytes; those that people
// write take a line.
const maxConditionText = 400

// writtenBody returns the body of a rule before it was compiled.
func (e *Engine) writtenBody(r *ast.Rule) ast.Body {
	m := e.written[r.Location.File]
	if m == nil {
		return nil
	}
	for _, w := range m.Rules {
		if w.Location.Offset == r.Location.Offset {
			return w.Body
		}
	}
	return nil
}

// held counts the conditions among the first n of a rule, without those that say
// which action it is about.
func held(r *ast.Rule, n int) int {
	count := 0
	for _, e := range r.Body[:n] {
		about := 0
		ast.WalkRefs(e, func(ref ast.Ref) bool {
			if ref.HasPrefix(ast.InputRootRef) && !ref.HasPrefix(inputAction.Value.(ast.Ref)) {
				about++
			}
			return false
		})
		count += min(about, 1)
	}
	return count
}
