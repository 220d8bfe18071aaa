package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Secrets finds secrets in what goes through the gate.
type Secrets interface {
	// Treat says what becomes of secrets in the arguments of a tool's calls, and
	// in their results.
	Treat(t *Tool) (arguments, results Treatment)
	// Redact returns a text without its secrets, and what it found: rules that
	// begin with "secret/". It returns text itself if there are none. Pointer is
	// the place of the text, a JSON Pointer.
	Redact(pointer, text string) (clean string, found []Finding)
}

// A Treatment is what becomes of secrets. The zero Treatment is to redact them.
type Treatment string

// The treatments.
const (
	RedactSecrets Treatment = "redact" // they are replaced by their kind
	AskSecrets    Treatment = "ask"    // a person has to approve the call; for arguments alone
	RefuseSecrets Treatment = "refuse"
	AllowSecrets  Treatment = "allow" // they are not looked for
)

// ruleSecret begins the rules of findings of secrets.
const ruleSecret = "secret/"

// Where a secret was found that goes to a server: a JSON Pointer follows.
const (
	inArguments = "arguments:"
	inAnswer    = "answer:" // of a client to what its server asked
	inMeta      = "meta:"   // of a client's request
)

// redacts reports whether secrets are taken out.
func (t Treatment) redacts() bool { return t == RedactSecrets || t == "" }

// treatments says what becomes of secrets in the arguments and the results of the
// call's tool.
func (w *way) treatments() (arguments, results Treatment) {
	if w.Secrets == nil {
		return AllowSecrets, AllowSecrets
	}
	return w.Secrets.Treat(w.rec.Tool)
}

// guardArguments looks for secrets in the arguments, and in the answers and the _meta
// that came with them, before anybody sees them. What is to be refused for them is
// refused by [way.refuseSecrets], once it is known that the caller may know of the tool.
func (w *way) guardArguments(c *Call) error {
	treat, _ := w.treatments()
	if treat == AllowSecrets {
		return nil
	}
	if err := w.guardMeta(c); err != nil {
		return err
	}
	clean, found, err := w.withoutSecrets(inArguments, c.Args)
	if err != nil {
		return err
	}
	responses, more, err := w.withoutSecrets(inAnswer, c.Responses)
	if err != nil {
		return err
	}
	found = append(found, more...)
	if len(found) == 0 {
		return nil
	}
	kinds := secretKinds(found)
	switch {
	case treat.redacts():
		c.Args, c.Responses = clean, responses
	case treat != AskSecrets && treat != RefuseSecrets:
		return errors.New("unknown treatment of secrets: " + string(treat))
	case kinds == "": // nothing but what is reported
	case treat == AskSecrets:
		w.secretAsks = "the arguments hold a secret (" + kinds + ")"
	default:
		w.secretRefused = "the arguments hold a secret (" + kinds + ")"
	}
	for _, f := range found {
		f.Removed = f.Removed && treat.redacts()
		w.found(f)
	}
	return nil
}

// guardMeta leaves out what holds a secret of the _meta that came with a call. No model
// chooses what is in it, and no server needs it for the call. The token of progress stays
// here: servers are given another.
func (w *way) guardMeta(c *Call) error {
	holds := make(map[string]bool)
	_, err := c.Meta.MapStrings(func(at Leaf, text string) string {
		pointer := at.Pointer()
		name, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
		if name == metaProgress {
			return text
		}
		_, found := w.Secrets.Redact(pointer, text)
		if secretKinds(found) != "" {
			holds[unescapePointer.Replace(name)] = true
		}
		for _, f := range found {
			f.At = inMeta + cut(pointer, maxPointer)
			w.found(f)
		}
		return text
	})
	if err != nil || len(holds) == 0 {
		return err
	}
	kept := []byte{'{'}
	for name, v := range c.Meta.Members() {
		if holds[name] {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(append(appendString(kept, name), ':'), v.Raw()...)
	}
	c.Meta, err = ParseDoc(append(kept, '}'))
	return err
}

// metaProgress is the member of a request's _meta by which its client asks to be told how
// far it is.
const metaProgress = "progressToken"

// withoutSecrets returns a document that goes to a server without its secrets, and what
// was found. Place begins the places of that.
func (w *way) withoutSecrets(place string, d Doc) (clean Doc, found []Finding, err error) {
	if treat, _ := w.treatments(); treat == AllowSecrets {
		return d, nil, nil
	}
	clean, err = d.MapStrings(func(at Leaf, s string) string {
		out, here := w.Secrets.Redact(at.Pointer(), s)
		for _, f := range here {
			f.At = place + cut(at.Pointer(), maxPointer)
			found = append(found, f)
		}
		return out
	})
	return clean, found, err
}

// secretKinds names the kinds of the secrets that are more than reported.
func secretKinds(found []Finding) string {
	var kinds []string
	for _, f := range found {
		if kind := strings.TrimPrefix(f.Rule, ruleSecret); f.Removed && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return cut(strings.Join(kinds, ", "), maxReason)
}

// refuseSecrets refuses the call for what guardArguments has found.
func (w *way) refuseSecrets(ctx context.Context) error {
	if w.secretRefused == "" {
		return nil
	}
	w.next(StepSanitize)
	return w.fail(ctx, w.secretRefused, nil)
}

// wary has a person asked for what guardArguments has found.
func (w *way) wary(d Decision) Decision {
	if w.secretAsks != "" && d.Effect == Allow {
		d.Obligations = append(slices.Clone(d.Obligations), Approve{})
		d.Reasons = append(slices.Clone(d.Reasons), w.secretAsks)
	}
	return d
}

// refusesSecrets reports whether a result with secrets must not be passed on at
// all.
func (w *way) refusesSecrets(found []Finding) bool {
	_, treat := w.treatments()
	return !treat.redacts() && slices.ContainsFunc(found, func(f Finding) bool { return f.Removed && strings.HasPrefix(f.Rule, ruleSecret) })
}
