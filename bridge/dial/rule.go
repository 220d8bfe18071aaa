package dial

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A Rule allows requests to one origin. The zero Rule is not valid.
type Rule struct {
	// Origin is scheme, host and port: "https://api.example.com",
	// "http://127.0.0.1:8080". The port may be left out where it is the scheme's.
	// The host stands for itself, not for the names below it.
	Origin string
	// Methods are those allowed. None means GET and HEAD.
	Methods []string
	// Path is what the path begins with, in whole segments: /v1 and /v1/ both
	// allow /v1, /v1/ and /v1/x, and not /v10. "" and "/" allow every path.
	Path string
	// Private allows addresses of private networks and of this machine, for this
	// rule only. A link-local or metadata address (169.254.169.254) is allowed
	// only if it is also the host of Origin.
	Private bool
}

// String returns r as it is written in a configuration.
func (r Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "{origin: %q", r.Origin)
	if len(r.Methods) > 0 {
		fmt.Fprintf(&b, ", methods: [%s]", strings.Join(r.Methods, ", "))
	}
	if r.Path != "" {
		fmt.Fprintf(&b, ", path: %q", r.Path)
	}
	if r.Private {
		b.WriteString(", private: true")
	}
	return b.String() + "}"
}

// Rules are rules that were checked. They do not change, and may be used from
// several goroutines. The zero Rules allow nothing.
type Rules struct{ list []rule }

type rule struct {
	origin  origin
	methods []string
	path    []string // decoded segments
	private bool
}

// Compile checks rules. The error tells all that is wrong with them.
func Compile(rules []Rule) (Rules, error) {
	var compiled Rules
	var errs []error
	for _, r := range rules {
		c, err := r.compile()
		errs = append(errs, err)
		compiled.list = append(compiled.list, c)
	}
	if err := errors.Join(errs...); err != nil {
		return Rules{}, err
	}
	return compiled, nil
}

func (r Rule) compile() (rule, error) {
	o, err := parseOrigin(r.Origin)
	if err != nil {
		return rule{}, fmt.Errorf("rule %s: %w", r, err)
	}
	if a, err := netip.ParseAddr(o.host); err == nil {
		switch far, what := classify(a); {
		case far <= allowance(r.Private, true):
		case far == never:
			return rule{}, fmt.Errorf("rule %s: %s is %s, which cannot be granted", r, a, what)
		default:
			return rule{}, fmt.Errorf("rule %s: %s is %s; if it is meant, add private: true", r, a, what)
		}
	}
	c := rule{origin: o, methods: []string{"GET", "HEAD"}, private: r.Private}
	if len(r.Methods) > 0 {
		c.methods = slices.Clone(r.Methods)
	}
	for _, m := range c.methods {
		if err := checkMethod(m); err != nil {
			return rule{}, fmt.Errorf("rule %s: methods: %w", r, err)
		}
	}
	if r.Path != "" {
		t, err := NewTarget("GET", o.String()+r.Path)
		switch {
		case err != nil || strings.ContainsAny(r.Path, "?#") || r.Path[0] != '/':
			return rule{}, fmt.Errorf("rule %s: path: write a path that begins with / and has no dot segments, empty segments, query or fragment", r)
		case t.Path != r.Path:
			return rule{}, fmt.Errorf("rule %s: path: write %s", r, t.Path)
		}
		c.path = segments(t.Path)
	}
	return c, nil
}

// Allow tells whether a rule allows t, and whether one that does is Private.
func (r Rules) Allow(t Target) (allowed, private bool) {
	for _, rule := range r.list {
		if rule.allows(t) {
			allowed, private = true, private || rule.private
		}
	}
	return allowed, private
}

func (r rule) allows(t Target) bool {
	if r.origin != t.origin() || !slices.Contains(r.methods, t.Method) {
		return false
	}
	path := segments(t.Path)
	return len(path) >= len(r.path) && slices.Equal(path[:len(r.path)], r.path)
}

// Narrow returns those of the rules whose origin is among origins, and so never
// allows more than r does. No origins leave no rules. An origin that cannot be
// read is an error, and the Rules then allow nothing.
func (r Rules) Narrow(origins []string) (Rules, error) {
	var kept []origin
	for _, raw := range origins {
		o, err := parseOrigin(raw)
		if err != nil {
			return Rules{}, err
		}
		kept = append(kept, o)
	}
	var narrow Rules
	for _, rule := range r.list {
		if slices.Contains(kept, rule.origin) {
			narrow.list = append(narrow.list, rule)
		}
	}
	return narrow, nil
}
