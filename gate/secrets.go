package gate

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
