package options

// Pins say which definitions of servers count as approved, and where that is kept.
type Pins struct {
	Mode PinMode // "" means PinTrustFirst
	File string  // path of the lockfile, which need not exist; required
	Dir  string  // folder for what is trusted first, and for the last listings of servers; required
}

// A PinMode says what is approved of servers that the lockfile does not have.
type PinMode string

// The modes.
const (
	// PinTrustFirst trusts what a server declares when it is first seen.
	PinTrustFirst PinMode = "trust-first"
	// PinStrict trusts nothing.
	PinStrict PinMode = "strict"
	// PinOff approves of everything, and keeps nothing.
	PinOff PinMode = "off"
)
