package decision

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/spelling"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// Read reads a decision. What it does not know is an error.
func Read(o ast.Object) (gate.Decision, error) {
	var d gate.Decision
	if o.Len() != 4 {
		return d, errors.New("expected an object of effect, reasons, obligations and labels")
	}
	effect, _ := input.Member(o, "effect").(ast.String)
	switch d.Effect = gate.Effect(effect); d.Effect {
	case gate.Allow, gate.Ask, gate.Deny:
	default:
		return gate.Decision{}, fmt.Errorf("effect %v: expected allow, ask or deny", effect)
	}
	var err error
	if d.Reasons, d.Scopes, err = Reasons(input.Member(o, "reasons"), d.Effect); err != nil {
		return gate.Decision{}, fmt.Errorf("reasons: %w", err)
	}
	labels, err := Texts(input.Member(o, "labels"))
	if err != nil {
		return gate.Decision{}, fmt.Errorf("labels: %w", err)
	}
	if d.Labels = gate.NewLabels(labels...); provenance.TooMany(d.Labels) {
		return gate.Decision{}, fmt.Errorf("labels: %d are more than a session can have", len(d.Labels))
	}
	if d.Obligations, err = obligations(input.Member(o, "obligations")); err != nil {
		return gate.Decision{}, fmt.Errorf("obligations: %w", err)
	}
	return d, nil
}

// Texts returns the elements of a set of strings that are not empty, sorted.
func Texts(v ast.Value) ([]string, error) {
	set, ok := v.(ast.Set)
	if !ok {
		return nil, errors.New("expected a set")
	}
	var list []string
	for _, t := range set.Slice() {
		s, ok := t.Value.(ast.String)
		if !ok || s == "" {
			return nil, fmt.Errorf("expected strings that are not empty, found %v", t)
		}
		list = append(list, string(s))
	}
	return list, nil
}

// Reasons reads why a decision is what it is: texts, or of a denial objects of a reason and of
// scopes that a caller's token would need. Those of all are returned if each names some: otherwise
// they would not do.
func Reasons(v ast.Value, effect gate.Effect) (list, scopes []string, err error) {
	set, ok := v.(ast.Set)
	if !ok {
		return nil, nil, errors.New("expected a set")
	}
	plain, do := ast.NewSet(), true
	for _, t := range set.Slice() {
		o, ok := t.Value.(ast.Object)
		if !ok {
			plain.Add(t)
			do = false
			continue
		}
		some, err := names(input.Member(o, "scopes"), spelling.Scope)
		if err != nil || effect != gate.Deny || o.Len() != 2 || len(some) == 0 {
			return nil, nil, fmt.Errorf("expected strings (deny also takes objects of reason and scopes), found %v", t)
		}
		plain.Add(ast.StringTerm(Reason(o)))
		scopes = append(scopes, some...)
	}
	if list, err = Texts(plain); err != nil || !do {
		return list, nil, err
	}
	slices.Sort(scopes)
	return list, slices.Compact(scopes), nil
}

// Reason returns the reason that a member of a set gives, "" for none.
func Reason(v any) string {
	if o, ok := v.(ast.Object); ok {
		return input.MemberText(o, "reason")
	}
	s, _ := v.(ast.String)
	return string(s)
}

// profiles are the sanitizer's, from the strictest.
var profiles = []string{"strict", "html", "text", "code", "off"}

// obligations reads a set of obligations. Of several of one type the strictest
// holds, which fulfils the others; of narrowings, what all of them leave; and all
// rates and redactions hold.
func obligations(v ast.Value) ([]obligation.Obligation, error) {
	set, ok := v.(ast.Set)
	if !ok {
		return nil, errors.New("expected a set")
	}
	if set.Len() == 0 {
		return nil, nil
	}
	var all together
	for _, t := range set.Slice() {
		one, err := ReadObligation(t.Value)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", t, err)
		}
		all.add(one)
	}
	return all.list(), nil
}

// together is what obligations come to.
type together struct {
	timeout   *obligation.Timeout
	size      *obligation.MaxResult
	profile   *obligation.Profile
	narrowing *obligation.Narrowing
	others    []obligation.Obligation // all of them hold
}

func (j *together) add(one obligation.Obligation) {
	switch o := one.(type) {
	case obligation.Timeout:
		if j.timeout == nil || o.After < j.timeout.After {
			j.timeout = &o
		}
	case obligation.MaxResult:
		if j.size == nil || o.Bytes < j.size.Bytes {
			j.size = &o
		}
	case obligation.Profile:
		if j.profile == nil || slices.Index(profiles, o.Name) < slices.Index(profiles, j.profile.Name) {
			j.profile = &o
		}
	case obligation.Narrowing:
		if j.narrowing != nil {
			o = j.narrowing.Intersect(o)
		}
		j.narrowing = &o
	default:
		j.others = append(j.others, one)
	}
}

func (j *together) list() []obligation.Obligation {
	var list []obligation.Obligation
	if j.timeout != nil {
		list = append(list, *j.timeout)
	}
	if j.size != nil {
		list = append(list, *j.size)
	}
	if j.profile != nil {
		list = append(list, *j.profile)
	}
	if j.narrowing != nil {
		list = append(list, *j.narrowing)
	}
	return append(list, j.others...)
}

// ReadObligation reads one obligation: its type, and the one member that the type
// also has; or one of the members in single, and no other.
func ReadObligation(v ast.Value) (obligation.Obligation, error) {
	o, ok := v.(ast.Object)
	if !ok {
		return nil, errors.New("expected an object")
	}
	if o.Len() == 1 {
		for name, read := range single {
			if v := input.Member(o, name); v != nil {
				return read(v)
			}
		}
	}
	var one obligation.Obligation
	kind, _ := input.Member(o, "type").(ast.String)
	switch kind {
	case "timeout":
		after, err := duration(input.Member(o, "after"))
		if err != nil {
			return nil, fmt.Errorf("after: %w", err)
		}
		one = obligation.Timeout{After: after}
	case "max_result":
		number, _ := input.Member(o, "bytes").(ast.Number)
		n, err := json.Number(number).Int64()
		if err != nil || n < 0 {
			return nil, errors.New("expected bytes, a whole number")
		}
		one = obligation.MaxResult{Bytes: n}
	case "sanitize":
		name, _ := input.Member(o, "profile").(ast.String)
		if !slices.Contains(profiles, string(name)) {
			return nil, fmt.Errorf("expected profile, one of %q", profiles)
		}
		one = obligation.Profile{Name: string(name)}
	default:
		return nil, errors.New("unknown type of obligation; check its spelling")
	}
	if o.Len() != 2 {
		return nil, errors.New("this gateway does not know all of its members")
	}
	return one, nil
}
