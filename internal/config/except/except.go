package except

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/match"
)

// A Found is what a rule has found in calls of a tool.
type Found struct {
	Rule        string `json:"rule"` // as a finding has it
	Tool        string `json:"tool"` // as it is offered
	Server      string `json:"server"`
	Arguments   bool   `json:"arguments,omitempty"`   // in what the tool was called with, not in a result
	Fingerprint string `json:"fingerprint,omitempty"` // of a secret; may be empty
}

// An Exception is an entry of the configuration.
type Exception struct {
	Name  string `json:"name"`  // says which of them it is: one, tool, server or rule
	Means string `json:"means"` // what follows of it
	Lines string `json:"lines"` // that say it, to be pasted into a file that has none of its keys

	at    []string // the keys of the mapping or list that it goes into
	key   string   // "" in a list
	value string   // in flow style
	holds func(*config.Config) bool
}

// String returns what is recorded of it.
func (e Exception) String() string { return strings.TrimSpace(e.Lines) }

var (
	toolName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	ruleName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	hexName  = regexp.MustCompile(`^[A-Za-z0-9+/=_-]+$`)
)

// kept has, for what the sanitizer finds, the laxest change of the profile that leaves it: what
// acts on a page stays under code, what hides only without any.
var kept = []struct{ prefix, profile string }{
	{"html/escaped", "text"}, {"html/policy", "text"}, {"html/", "code"}, {"link/", "code"}, {"text/padding", "code"}, {"control/return", "code"},
	{"unicode/overlay", "code"}, {"unicode/fullwidth", "code"}, {"control/", "off"}, {"unicode/", "off"}, {"token/", "off"}, {"text/unstable", "off"},
}

// For returns the exceptions that there are from what was found, the narrowest first; none if no
// entry of the configuration decides on it, or what there is holds already.
func For(c *config.Config, f Found) (all []Exception) {
	rule, secret := strings.CutPrefix(f.Rule, "secret/")
	switch {
	case secret && ruleName.MatchString(rule):
		all = secrets(c, f, rule)
	case !f.Arguments:
		if i := slices.IndexFunc(kept, func(k struct{ prefix, profile string }) bool { return strings.HasPrefix(f.Rule, k.prefix) }); i >= 0 {
			all = profiles(c, f, kept[i].profile)
		}
	}
	return slices.DeleteFunc(all, func(e Exception) bool { return e.holds(c) })
}

var profileMeans = map[string]string{
	"text": "Texts are treated as prose: what acts in them becomes text, every other byte stays.",
	"code": "Markup, links and white space stay as they come, and whoever shows them acts on what is in them; hidden characters, terminal sequences and control tokens still go.",
	"off":  "Nothing is made safe any more: only for what nobody shows to a model or a person.",
}

func profiles(c *config.Config, f Found, profile string) (all []Exception) {
	if toolName.MatchString(f.Tool) {
		all = append(all, made(Exception{
			Name: "tool", Means: "Results of " + f.Tool + ": " + profileMeans[profile],
			at: []string{"sanitize", "tools"}, key: strconv.Quote(f.Tool), value: profile,
			holds: func(c *config.Config) bool {
				i := slices.IndexFunc(c.Sanitize.Tools, func(r config.Rule) bool { return match.Pattern(r.Pattern).Matches(f.Tool) })
				return i >= 0 && c.Sanitize.Tools[i].Profile == profile
			},
		}))
	}
	named := func(s config.Server) bool { return s.ID == f.Server }
	if profile != "off" && slices.ContainsFunc(c.Servers, named) {
		all = append(all, made(Exception{
			Name: "server", Means: "Results of every tool of server " + f.Server + " without a profile of its own: " + profileMeans[profile],
			at: []string{"servers", f.Server}, key: "sanitize", value: profile,
			holds: func(c *config.Config) bool {
				i := slices.IndexFunc(c.Servers, named)
				return i >= 0 && c.Servers[i].Sanitize == profile
			},
		}))
	}
	return all
}

func secrets(c *config.Config, f Found, rule string) (all []Exception) {
	if hexName.MatchString(f.Fingerprint) {
		one := config.SecretAllow{Rule: rule, Fingerprint: f.Fingerprint}
		all = append(all, made(Exception{
			Name: "one", Means: "This one value is not a secret: it stays in arguments and results, and in the audit log.",
			at: []string{"sanitize", "secrets", "allow"}, value: "{rule: " + scalar(rule) + ", fingerprint: " + strconv.Quote(f.Fingerprint) + "}",
			holds: func(c *config.Config) bool { return slices.Contains(c.Sanitize.Secrets.Allow, one) },
		}))
	}
	if toolName.MatchString(f.Tool) {
		all = append(all, treated(c, f))
	}
	report := c.Sanitize.Secrets.Report
	if report == nil {
		report = []string{"generic-api-key"} // the default, which a list takes the place of
	}
	e := Exception{
		Name: "rule", Means: "What rule " + rule + " finds is reported, and stays where it is, for every tool; the audit log has it redacted.",
		at: []string{"sanitize", "secrets", "report"}, value: scalar(rule),
		holds: func(c *config.Config) bool {
			now := c.Sanitize.Secrets.Report
			return slices.Contains(now, rule) || now == nil && slices.Contains(report, rule)
		},
	}
	if c.Sanitize.Secrets.Report == nil {
		e.at, e.key, e.value = []string{"sanitize", "secrets"}, "report", "["+strings.Join(append(report, scalar(rule)), ", ")+"]"
	}
	return append(all, made(e))
}

// treated leaves secrets in the arguments or the results of a tool, and what is said of the other
// as it is.
func treated(c *config.Config, f Found) Exception {
	is := func(c *config.Config) (r config.SecretRule) {
		s := c.Sanitize.Secrets
		if i := slices.IndexFunc(s.Tools, func(r config.SecretRule) bool { return match.Pattern(r.Pattern).Matches(f.Tool) }); i >= 0 {
			r = s.Tools[i]
		}
		return config.SecretRule{Pattern: r.Pattern, Arguments: cmp.Or(r.Arguments, s.Arguments), Results: cmp.Or(r.Results, s.Results)}
	}
	now := is(c)
	want, what, other := now, "results", "arguments: "+now.Arguments
	want.Results = "allow"
	if f.Arguments {
		want, what, other = now, "arguments", "results: "+now.Results
		want.Arguments = "allow"
	}
	e := Exception{
		Name: "tool", Means: "Secrets of every kind stay in the " + what + " of " + f.Tool + "; the audit log has them redacted.",
		at: []string{"sanitize", "secrets", "tools"}, key: strconv.Quote(f.Tool), value: "{" + what + ": allow, " + other + "}",
		holds: func(c *config.Config) bool {
			got := is(c)
			return got.Arguments == want.Arguments && got.Results == want.Results
		},
	}
	if strings.HasSuffix(other, ": ") { // nothing is said of it anywhere
		e.value = "{" + what + ": allow}"
	}
	if slices.ContainsFunc(c.Sanitize.Secrets.Tools, func(r config.SecretRule) bool { return r.Pattern == f.Tool }) {
		e.at, e.key, e.value = append(e.at, f.Tool), what, "allow"
	}
	return made(e)
}

// scalar writes a word, in quotes if it needs them.
func scalar(s string) string {
	if ruleName.MatchString(s) && s[0] >= 'a' && s[0] <= 'z' {
		return s
	}
	return strconv.Quote(s)
}

// made fills in the lines, which nest as the docs do.
func made(e Exception) Exception {
	e.Lines = nested(e.at, 0, e.entry(), e.key == "") + "\n"
	return e
}

// entry is what is written in its mapping or list.
func (e Exception) entry() string {
	if e.key == "" {
		return e.value
	}
	return e.key + ": " + e.value
}

// nested returns an entry within the keys from a depth on, the outermost without braces.
func nested(at []string, depth int, entry string, isItem bool) string {
	for i := len(at) - 1; i >= depth; i-- {
		if isItem {
			entry = "[" + entry + "]"
		} else {
			entry = "{" + entry + "}"
		}
		entry, isItem = word(at[i])+": "+entry, false
	}
	return entry
}

// word writes a key.
func word(s string) string {
	if toolName.MatchString(s) && strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' }) && s != "null" && s != "true" && s != "false" {
		return s
	}
	return strconv.Quote(s)
}
