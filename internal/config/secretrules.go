package config

import (
	"errors"
	"regexp"
)

// Secrets says what becomes of secrets that are found in arguments and results.
// An empty treatment is to redact them.
type Secrets struct {
	Arguments string // redact | ask | refuse | allow
	Results   string // redact | refuse | allow
	Tools     []SecretRule
	Allow     []SecretAllow
	Skip      []string // ids of rules that are not used
	Report    []string // ids of rules that report, and change nothing; nil: generic-api-key
	Checked   bool     // also look for numbers with a checksum: cards, accounts
}

// A SecretRule says so for the tools that match Pattern, see [Rule]. The first
// that matches counts.
type SecretRule struct{ Pattern, Arguments, Results string }

// SecretAllow names findings that are none: all fields that are set must agree.
type SecretAllow struct{ Rule, Fingerprint, Path, Regexp string }

var (
	secretArguments = []string{"redact", "ask", "refuse", "allow"}
	secretResults   = []string{"redact", "refuse", "allow"}
)

func (d *decoder) secretScan(to *Secrets) reader {
	return func(n *node, path string) {
		d.table(n, path, map[string]reader{
			"arguments": d.one(&to.Arguments, secretArguments...),
			"results":   d.one(&to.Results, secretResults...),
			"tools":     d.secretRules(&to.Tools),
			"allow":     d.secretAllows(&to.Allow),
			"skip":      d.texts(&to.Skip),
			"report":    d.texts(&to.Report),
			"checked":   d.flag(&to.Checked),
		})
	}
}

func (d *decoder) secretRules(to *[]SecretRule) reader {
	return func(n *node, path string) {
		d.each(n, path, func(f field, path string) {
			r := SecretRule{Pattern: f.key}
			if err := checkTools(f.key); err != nil {
				d.fail(&node{line: f.line}, path, "%q %v", f.key, err)
			}
			d.table(f.value, path, map[string]reader{
				"arguments": d.one(&r.Arguments, secretArguments...),
				"results":   d.one(&r.Results, secretResults...),
			})
			*to = append(*to, r)
		})
	}
}

func (d *decoder) secretAllows(to *[]SecretAllow) reader {
	return func(n *node, path string) {
		d.items(n, path, func(item *node, at string) {
			var a SecretAllow
			d.table(item, at, map[string]reader{
				"rule": d.text(&a.Rule), "fingerprint": d.text(&a.Fingerprint), "path": d.text(&a.Path, compiles), "regexp": d.text(&a.Regexp, compiles),
			})
			if a == (SecretAllow{}) {
				d.fail(item, at, "names nothing: set rule, fingerprint, path or regexp")
			}
			*to = append(*to, a)
		})
	}
}

func compiles(s string) error {
	if _, err := regexp.Compile(s); err != nil {
		return errors.New("is no regular expression of RE2")
	}
	return nil
}
