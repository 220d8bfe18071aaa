package secrets

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// Options configure a [Scanner]. The zero value looks for what the package's rules
// find in plain text, and redacts all of it.
type Options struct {
	Rules   []Rule   // kinds of secrets besides those of the package
	Skip    []string // ids of rules that are not used
	Report  []string // ids of rules whose findings are reported and whose text stays
	Allow   []Allow  // what is no secret here
	Checked bool     // also numbers that prove themselves: [RuleCard] and its like
	Decode  bool     // also in base64, hex, percent signs, and escapes of Markdown, HTML and JSON
	Key     []byte   // of fingerprints; none: a random one, and they hold for this scanner only
}

// Allow names findings that are none. All fields that are set must agree; one
// must be set at least.
type Allow struct {
	Rule        string // its id
	Fingerprint string // as in [Finding]
	Path        string // regular expression, found in the path of the text
	Regexp      string // regular expression, found in the secret
}

// A Finding is a secret in a text. It holds nothing of its content.
type Finding struct {
	Rule        string
	Kind        string // what the rule says of it, a sentence
	Start, End  int    // bytes of the text
	Fingerprint string // 32 hexadecimal digits, the same for the same secret and key
	Redacted    bool   // false: reported, and left in place
}

// A Scanner finds secrets. It is immutable, and may be used from several
// goroutines. Scanners share what they compile; another one costs little.
type Scanner struct {
	*ruleSet
	skip, report []bool // by rule
	allow        []allow
	decode       bool
	key          []byte
}

// New returns a scanner. The id of no rule, an expression that does not compile
// and an Allow without fields are errors.
func New(o Options) (*Scanner, error) {
	set, err := loadRules()
	if err != nil {
		return nil, err
	}
	if len(o.Rules) > 0 {
		if set, err = set.with(o.Rules); err != nil {
			return nil, err
		}
	}
	s := &Scanner{ruleSet: set, decode: o.Decode, key: slices.Clone(o.Key)}
	if len(s.key) == 0 {
		s.key = make([]byte, sha256.Size)
		rand.Read(s.key)
	}
	s.skip, s.report = make([]bool, len(set.rules)), make([]bool, len(set.rules))
	for _, c := range set.checks {
		s.skip[c.order] = !o.Checked && !c.always
	}
	for _, id := range o.Skip {
		i, err := set.index(id)
		if err != nil {
			return nil, err
		}
		s.skip[i] = true
	}
	for _, id := range o.Report {
		i, err := set.index(id)
		if err != nil {
			return nil, err
		}
		s.report[i] = true
	}
	for i, a := range o.Allow {
		c, err := a.compile()
		if err != nil {
			return nil, fmt.Errorf("allowance %d for secrets: %w", i, err)
		}
		s.allow = append(s.allow, c)
	}
	return s, nil
}

// fingerprint is a keyed hash of a secret: a reader of it cannot try secrets out, even short ones.
func (s *Scanner) fingerprint(secret string) string {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(secret))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// allow is an [Allow] whose expressions are compiled.
type allow struct {
	Allow
	path, secret *regexp.Regexp
}

func (a Allow) compile() (c allow, err error) {
	if a == (Allow{}) {
		return c, errors.New("it has no field and would allow everything; set rule, fingerprint, path or regexp")
	}
	c.Allow = a
	if c.path, err = regexp.Compile(a.Path); err != nil {
		return c, fmt.Errorf("path: %w", err)
	}
	if c.secret, err = regexp.Compile(a.Regexp); err != nil {
		return c, fmt.Errorf("regexp: %w", err)
	}
	return c, nil
}

// allowed reports whether a match is allowed by configuration.
func (s *Scanner) allowed(path string, m match) bool {
	return slices.ContainsFunc(s.allow, func(a allow) bool {
		return (a.Rule == "" || a.Rule == m.rule.ID) &&
			(a.Path == "" || a.path.MatchString(path)) &&
			(a.Regexp == "" || a.secret.MatchString(m.secret)) &&
			(a.Fingerprint == "" || a.Fingerprint == s.fingerprint(m.secret))
	})
}
