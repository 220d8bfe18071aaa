package config

import "github.com/wasmgate/wasmgate/internal/config/decode"

// Secrets says what becomes of secrets that are found in arguments and results.
// An empty treatment is to redact them.
type Secrets struct {
	Arguments string        `key:"arguments redact|ask|refuse|allow"`
	Results   string        `key:"results redact|refuse|allow"`
	Tools     []SecretRule  `key:"tools tool"`
	Rules     []SecretKind  `key:"rules"` // kinds of secrets besides those that are known
	Allow     []SecretAllow `key:"allow"`
	Skip      []string      `key:"skip"`    // ids of rules that are not used
	Report    []string      `key:"report"`  // ids of rules that report, and change nothing; nil: generic-api-key
	Checked   bool          `key:"checked"` // also look for numbers with a checksum: cards, accounts
}

// A SecretRule says so for the tools that match Pattern, see [Rule]. The first
// that matches counts.
type SecretRule struct {
	Pattern   string `key:"*"`
	Arguments string `key:"arguments redact|ask|refuse|allow"`
	Results   string `key:"results redact|refuse|allow"`
}

// A SecretKind is a kind of secret of the operator's own.
type SecretKind struct {
	ID     string `key:"id"`
	Regexp string `key:"regexp regexp"`
}

// Check implements [decode.Checker].
func (k *SecretKind) Check(v decode.Value) {
	if k.ID == "" || k.Regexp == "" {
		v.Fail("is incomplete: set id and regexp")
	}
}

// A SecretAllow names findings that are none: all fields that are set must agree.
type SecretAllow struct {
	Rule        string `key:"rule"`
	Fingerprint string `key:"fingerprint"`
	Path        string `key:"path regexp"`
	Regexp      string `key:"regexp regexp"`
}

// Check implements [decode.Checker].
func (a *SecretAllow) Check(v decode.Value) {
	if *a == (SecretAllow{}) {
		v.Fail("names nothing: set rule, fingerprint, path or regexp")
	}
}
