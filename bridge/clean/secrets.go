package clean

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/secrets"
)

// SecretRules say what becomes of secrets in arguments and results. The zero
// value redacts both, but for what only looks like a secret, which is reported.
type SecretRules struct {
	Arguments, Results gate.Treatment
	Tools              []SecretRule   // the first that matches counts
	Rules              []secrets.Rule // kinds of secrets besides those that are known
	Allow              []secrets.Allow
	Skip               []string // ids of rules that are not used
	Report             []string // ids of rules that only report; nil: [secrets.RuleGeneric]
	Checked            bool     // also numbers with a checksum: cards, accounts
}

// A SecretRule says so for tools whose qualified names match Pattern, see [Rule].
// An empty treatment is that of all tools.
type SecretRule struct {
	Pattern            string
	Arguments, Results gate.Treatment
}

// Secrets is the gate's [gate.Secrets].
type Secrets struct {
	rules SecretRules
	scan  *secrets.Scanner
}

var _ gate.Secrets = (*Secrets)(nil)

// NewSecrets returns what looks for secrets in calls, and what takes them out
// of the audit log, where those that are only reported have no business either.
func NewSecrets(rules SecretRules, seal []byte) (*Secrets, func(name, text string) string, error) {
	if rules.Report == nil {
		rules.Report = []string{secrets.RuleGeneric}
	}
	o := secrets.Options{Rules: rules.Rules, Skip: rules.Skip, Report: rules.Report, Allow: rules.Allow, Checked: rules.Checked, Decode: true}
	if seal != nil {
		key, err := hkdf.Key(sha256.New, seal, nil, "wasmgate fingerprints of secrets", sha256.Size)
		if err != nil {
			return nil, nil, err
		}
		o.Key = key
	}
	scan, err := secrets.New(o)
	if err != nil {
		return nil, nil, fmt.Errorf("sanitize: secrets: %w", err)
	}
	o.Report = nil
	log, err := secrets.New(o)
	if err != nil {
		return nil, nil, fmt.Errorf("sanitize: secrets: %w", err)
	}
	return &Secrets{rules, scan}, func(name, text string) string { clean, _ := log.RedactNamed("", name, text); return clean }, nil
}

// Returned returns what remembers the words of results, if any could be taken for secrets.
func (s *Secrets) Returned() interface {
	Learn(s gate.SessionKey, server string, result gate.Doc)
	Knows(s gate.SessionKey, server, text string) bool
} {
	if slices.Contains(s.rules.Report, secrets.RuleGeneric) || slices.Contains(s.rules.Skip, secrets.RuleGeneric) {
		return nil
	}
	return new(session.Returned)
}

// Treat implements [gate.Secrets].
func (s *Secrets) Treat(t *gate.Tool) (arguments, results gate.Treatment) {
	arguments, results = s.rules.Arguments, s.rules.Results
	if len(s.rules.Tools) == 0 {
		return arguments, results
	}
	name := t.Name.String()
	for _, r := range s.rules.Tools {
		if (Rule{Pattern: r.Pattern}).matches(name) {
			if r.Arguments != "" {
				arguments = r.Arguments
			}
			if r.Results != "" {
				results = r.Results
			}
			break
		}
	}
	return arguments, results
}

// Redact implements [gate.Secrets].
func (s *Secrets) Redact(pointer, name, text string) (string, []gate.Finding) {
	clean, found := s.scan.RedactNamed(pointer, name, text)
	if len(found) == 0 {
		return clean, nil
	}
	all := make([]gate.Finding, len(found))
	for i, f := range found {
		all[i] = gate.Finding{Rule: "secret/" + f.Rule, Count: 1, Removed: f.Redacted, Fingerprint: f.Fingerprint}
	}
	return clean, all
}
