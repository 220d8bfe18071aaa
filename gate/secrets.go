package gate

import (
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// Secrets finds secrets in what goes through the gate.
type Secrets interface {
	// Treat says what becomes of secrets in the arguments of a tool's calls, and
	// in their results.
	Treat(t *Tool) (arguments, results Treatment)
	// Redact returns a text without its secrets, and what it found: rules that
	// begin with "secret/". It returns text itself if there are none. Pointer is
	// the place of the text, a JSON Pointer, and name what the text is called
	// there, see [Leaf.Name].
	Redact(pointer, name, text string) (clean string, found []Finding)
}

// A Treatment is what becomes of secrets. The zero Treatment is to redact them.
type Treatment string

// The treatments.
const (
	redactSecrets Treatment = "redact" // they are replaced by their kind
	askSecrets    Treatment = "ask"    // a person has to approve the call; for arguments alone
	refuseSecrets Treatment = "refuse"
	allowSecrets  Treatment = "allow" // they are not looked for
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
func (t Treatment) redacts() bool { return t == redactSecrets || t == "" }

// holdSecret reports whether a secret was taken out.
func holdSecret(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Removed && strings.HasPrefix(f.Rule, ruleSecret) })
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

// pointerWithout returns the place of a string without the secrets that names in it
// are: neither clients nor the log get them by that way.
func pointerWithout(secrets Secrets, at doc.Leaf) string {
	if secrets == nil {
		return at.Pointer()
	}
	path := slices.Clone(doc.Path(at))
	name := ""
	for i, token := range path {
		path[i], _ = secrets.Redact("", name, token)
		name = token
	}
	return doc.LeafAt(path).Pointer()
}
