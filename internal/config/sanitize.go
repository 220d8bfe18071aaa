package config

import (
	"errors"
	"regexp"
)

// Sanitize chooses the profile for a result: of the first rule in Tools that
// matches the offered name of the tool, else the profile of its server, else
// Profile; where that is text, code if the text is source. The first rule in MIME
// that matches the content's type makes it stricter at most. A profile is strict,
// html, text, code or off.
type Sanitize struct {
	Profile string
	Tools   []Rule
	MIME    []Rule
	Secrets Secrets
	// Links are the targets to which links and images stay active: origins, hosts,
	// *.host, or *. Nil leaves those that fetch and carry nothing; an empty list
	// leaves none.
	Links []string
}

// A Rule gives a profile to what matches Pattern: a literal, or a literal
// with * at its end.
type Rule struct{ Pattern, Profile string }

var mimePattern = regexp.MustCompile(`^[a-z0-9!#$&^_.+-]+/([a-z0-9!#$&^_.+-]+|\*)$`)

func (d *decoder) sanitize(to *Sanitize, n *node, path string) {
	d.table(n, path, map[string]reader{
		"profile": d.one(&to.Profile, profiles...),
		"tools":   d.rules(&to.Tools, checkTools),
		"mime":    d.rules(&to.MIME, matches(mimePattern, "a media type in lower case, such as text/html or text/*")),
		"links": func(n *node, path string) {
			to.Links = []string{}
			d.texts(&to.Links, linkTarget)(n, path)
		},
		"secrets": d.secretScan(&to.Secrets),
	})
}

var linkTargets = regexp.MustCompile(`^(\*|(https?://|\*\.)?[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?)$`)

func linkTarget(s string) error {
	if !linkTargets.MatchString(s) {
		return errors.New("is no origin, no host and not *: write https://example.com, example.com or *.example.com")
	}
	return nil
}

func (d *decoder) rules(to *[]Rule, pattern check) reader {
	return func(n *node, path string) {
		d.each(n, path, func(f field, path string) {
			r := Rule{Pattern: f.key}
			if err := pattern(f.key); err != nil {
				d.fail(&node{line: f.line}, path, "%q %v", f.key, err)
			}
			d.one(&r.Profile, profiles...)(f.value, path)
			*to = append(*to, r)
		})
	}
}
