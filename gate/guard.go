package gate

import (
	"errors"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A guard is what becomes of secrets in what goes to the server of a tool, and in what
// comes from it.
type guard struct {
	Secrets            // nil if they are not looked for
	arguments, results Treatment
	returned           func(text string) bool // earlier, by the tool's server; nil knows nothing
}

// guard returns the guard of a tool.
func (p *Parts) guard(t *Tool) guard {
	if p.Secrets == nil {
		return guard{nil, allowSecrets, allowSecrets, nil}
	}
	arguments, results := p.Secrets.Treat(t)
	if t.Relay { // they are those of the other call, and treated as that tool's are
		arguments = allowSecrets
	}
	return guard{p.Secrets, arguments, results, nil}
}

// searched is what was found of secrets in what came with a call, and what is to be done about them
// besides taking them out, in words; "" for nothing.
type searched struct {
	found         []Finding
	asks, refuses string
}

// call looks for secrets in the arguments of a call, and in the answers and the _meta that came
// with them, before anybody sees them, and takes them out if the configuration says so. A call that
// is to be refused because of them is refused once it is known that the caller may know of the
// tool.
func (g guard) call(c *Call) (b searched, err error) {
	if g.arguments == allowSecrets {
		return searched{}, nil
	}
	if b.found, err = g.meta(c); err != nil {
		return b, err
	}
	clean, found, err := g.without(inArguments, c.Args)
	if err != nil {
		return b, err
	}
	responses, more, err := g.without(inAnswer, c.Brought.Responses)
	if err != nil {
		return b, err
	}
	found = append(found, more...)
	if len(found) == 0 {
		return b, nil
	}
	words := "the arguments hold a secret (" + secretKinds(found) + ")"
	switch {
	case g.arguments.redacts():
		c.Args, c.Brought.Responses = clean, responses
	case g.arguments != askSecrets && g.arguments != refuseSecrets:
		return b, errors.New("unknown treatment of secrets: " + string(g.arguments))
	case secretKinds(found) == "": // nothing but what is reported
	case g.arguments == askSecrets:
		b.asks = words
	default:
		b.refuses = words
	}
	for _, f := range found {
		f.Removed = f.Removed && g.arguments.redacts()
		b.found = append(b.found, f)
	}
	return b, nil
}

// meta leaves out what holds a secret of the _meta that came with a call. No model
// chooses what is in it, and no server needs it for the call. The token of progress stays
// here: servers are given another.
func (g guard) meta(c *Call) (all []Finding, err error) {
	if c.Meta.IsZero() {
		return nil, nil
	}
	holds := make(map[string]bool)
	_, err = doc.MapDeep(c.Meta, func(at doc.Leaf, text string) string {
		place := at.Pointer()
		name, _, _ := strings.Cut(strings.TrimPrefix(place, "/"), "/")
		if name == metaProgress {
			return text
		}
		_, found := g.Redact(place, at.Name(), text)
		if secretKinds(found) != "" {
			holds[pointer.Unescape(name)] = true
		}
		for _, f := range found {
			f.At = inMeta + cut(pointerWithout(g, at), maxPointer)
			all = append(all, f)
		}
		return text
	})
	if err != nil || len(holds) == 0 {
		return all, err
	}
	kept := []byte{'{'}
	for name, v := range c.Meta.Members() {
		if holds[name] {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(append(doc.AppendString(kept, name), ':'), v.Raw()...)
	}
	c.Meta, err = ParseDoc(append(kept, '}'))
	return all, err
}

// metaProgress is the member of a request's _meta by which its client asks for notifications of its
// progress.
const metaProgress = "progressToken"

// without returns a document that goes to a server without its secrets, and what was
// found. Place begins the places of that.
func (g guard) without(place string, d Doc) (clean Doc, found []Finding, err error) {
	if g.arguments == allowSecrets || d.IsZero() {
		return d, nil, nil
	}
	clean, err = doc.MapDeep(d, func(at doc.Leaf, s string) string {
		out, here := g.Redact(at.Pointer(), at.Name(), s)
		if g.returned != nil && onlyGeneric(here) && (at.JSON || g.returned(s)) { // JSON has been looked through
			return s
		}
		for _, f := range here {
			known := func(old Finding) bool { return old.Rule == f.Rule && old.Fingerprint == f.Fingerprint }
			if at.JSON && slices.ContainsFunc(found, known) { // in a part of it
				continue
			}
			f.At = place + cut(pointerWithout(g, at), maxPointer)
			found = append(found, f)
		}
		return out
	})
	return clean, found, err
}

// ruleGeneric is the rule of findings that look like a secret and are of no known kind.
const ruleGeneric = ruleSecret + "generic-api-key"

func onlyGeneric(found []Finding) bool {
	return len(found) > 0 && !slices.ContainsFunc(found, func(f Finding) bool { return f.Rule != ruleGeneric })
}

// wary has a person asked for the secrets that came with a call.
func (b searched) wary(d Decision) Decision {
	if b.asks != "" && d.Effect == Allow {
		d.Obligations = append(slices.Clone(d.Obligations), obligation.Approve{})
		d.Reasons = append(slices.Clone(d.Reasons), b.asks)
	}
	return d
}
