package secrets

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// RuleGeneric is the rule for whatever looks like a secret behind a word like
// key, token or password.
const RuleGeneric = "generic-api-key"

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

// Find returns the secrets in a text, in order and without overlaps.
func (s *Scanner) Find(text string) []Finding { return s.FindIn("", text) }

// FindIn is Find for a text whose path is known: the name of a file, the URI of a resource. Some
// rules hold only for files of certain names.
func (s *Scanner) FindIn(path, text string) []Finding {
	return s.merge(s.scan(path, text, 0))
}

// Redact returns the text with a marker, such as "[redacted: github-pat]", for
// each secret, and what it found, with places in the text that it was given. It
// is idempotent; if there is nothing to redact it returns text itself.
func (s *Scanner) Redact(text string) (clean string, found []Finding) { return s.RedactIn("", text) }

// maxPasses bounds how often a text is gone through. A secret can hide another
// that its expression took along; two passes find all but what was made to last.
const maxPasses = 8

// unstable replaces a text in which there are still secrets after maxPasses.
const unstable = "[redacted: text in which secrets could not be told apart]"

// RedactIn is [Scanner.Redact] for a text whose path is known, as in
// [Scanner.FindIn].
func (s *Scanner) RedactIn(path, text string) (clean string, found []Finding) {
	return redact(text, func(text string) []Finding { return s.FindIn(path, text) })
}

func redact(text string, find func(string) []Finding) (clean string, found []Finding) {
	clean = text
	var redacted []Finding
	for range maxPasses {
		all := find(clean)
		if len(all) == 0 && len(redacted) == 0 {
			return clean, nil // nearly always
		}
		fresh, reported := split(all)
		move(fresh, redacted)
		move(reported, redacted)
		if len(fresh) == 0 {
			return clean, join(redacted, reported)
		}
		redacted = join(redacted, fresh)
		clean = replace(text, redacted)
	}
	for i := range redacted {
		redacted[i].Start, redacted[i].End = 0, len(text)
	}
	return unstable, redacted[:1]
}

// split parts what is to be redacted from what is only reported.
func split(all []Finding) (redact, report []Finding) {
	for _, f := range all {
		if f.Redacted {
			redact = append(redact, f)
		} else {
			report = append(report, f)
		}
	}
	return redact, report
}

func marker(rule string) string { return "[redacted: " + rule + "]" }

// replace replaces findings by markers.
func replace(text string, found []Finding) string {
	var b strings.Builder
	last := 0
	for _, f := range found {
		b.WriteString(text[last:f.Start])
		b.WriteString(marker(f.Rule))
		last = f.End
	}
	b.WriteString(text[last:])
	return b.String()
}

// move puts findings in a redacted text where they were before. A marker that one
// of them touches belongs to it. Both lists are in order.
func move(found, redacted []Finding) {
	next, longer := 0, 0 // the marker behind, and how much longer the text is before it
	for i := range found {
		f := &found[i]
		start, end := f.Start, f.End
		f.Start = -1
		for ; next < len(redacted); next++ {
			r := redacted[next]
			from := r.Start + longer
			to := from + len(marker(r.Rule))
			if end <= from {
				break
			}
			if start < to && f.Start < 0 {
				f.Start = min(start-longer, r.Start)
			}
			if end < to {
				end = to
			}
			longer += to - from - (r.End - r.Start)
		}
		if f.Start < 0 {
			f.Start = start - longer
		}
		f.End = end - longer
	}
}

// merge turns matches into findings.
func (s *Scanner) merge(matches []match) []Finding {
	if len(matches) == 0 {
		return nil
	}
	all := make([]Finding, len(matches))
	for i, m := range matches {
		all[i] = Finding{m.rule.ID, m.rule.Description, m.start, m.end, s.fingerprint(m.secret), !s.report[m.rule.order]}
	}
	redact, report := split(all)
	return join(redact, report)
}

// join puts findings into one list, in order. Where they overlap or touch they
// become one, which has the name of the longest that is of a certain kind; what is
// only reported makes none longer.
func join(a, b []Finding) []Finding {
	all := slices.Concat(a, b)
	byPlace := func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) }
	slices.SortFunc(all, byPlace)
	redact, report := split(all)
	redact, report = coalesce(redact), coalesce(report)
	report = slices.DeleteFunc(report, func(f Finding) bool {
		i, _ := slices.BinarySearchFunc(redact, f.Start, func(r Finding, start int) int { return cmp.Compare(r.End, start+1) })
		return i < len(redact) && redact[i].Start < f.End
	})
	all = slices.Concat(redact, report)
	slices.SortFunc(all, byPlace)
	return all
}

func coalesce(sorted []Finding) []Finding {
	var out []Finding
	for _, f := range sorted {
		if n := len(out); n == 0 || f.Start > out[n-1].End {
			out = append(out, f)
			continue
		}
		last := &out[len(out)-1]
		end := max(last.End, f.End)
		if last.Rule == RuleGeneric || f.Rule != RuleGeneric && f.End-f.Start > last.End-last.Start {
			f.Start, *last = last.Start, f
		}
		last.End = end
	}
	return out
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
