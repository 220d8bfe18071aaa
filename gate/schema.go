package gate

// A Schema checks a document.
type Schema interface {
	// Validate returns nil, [doc.Violations], or another error if the check itself
	// could not be done. It is called concurrently.
	Validate(Doc) error
}

// A Coercer is a [Schema] that can turn what models write into what it says, where that
// loses nothing.
type Coercer interface {
	// Coerce returns the document with what it changed, and the JSON Pointers of that.
	Coerce(Doc) (Doc, []string)
	// Takes shows in a line what would be valid.
	Takes() string
}

// An InputMode says how arguments are held against a tool's input schema. The zero value
// coerces.
type InputMode string

// The modes.
const (
	// coerceInput turns what loses nothing into what the schema says, and refuses what
	// breaks it all the same.
	coerceInput InputMode = "coerce"
	// enforceInput refuses what breaks the schema as it was sent.
	enforceInput InputMode = "enforce"
	// warnInput passes arguments as they were sent, with a finding if they break the schema.
	warnInput InputMode = "warn"
)
