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
	Profile string  `key:"profile profile" default:"text"`
	Tools   []Rule  `key:"tools tool"`
	MIME    []Rule  `key:"mime mime"`
	Secrets Secrets `key:"secrets"`
	// Links are the targets to which links and images stay active: origins, hosts,
	// *.host, or *. Nil leaves those that fetch and carry nothing; an empty list
	// leaves none.
	Links []string `key:"links link"`
}

// A Rule gives a profile to what matches Pattern: a literal, or a literal
// with * at its end.
type Rule struct {
	Pattern string `key:"*"`
	Profile string `key:"= profile"`
}

var mimePattern = regexp.MustCompile(`^[a-z0-9!#$&^_.+-]+/([a-z0-9!#$&^_.+-]+|\*)$`)

var linkTargets = regexp.MustCompile(`^(\*|(https?://|\*\.)?[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?)$`)

func linkTarget(s string) error {
	if !linkTargets.MatchString(s) {
		return errors.New("is not an origin, a host or *: write https://example.com, example.com or *.example.com")
	}
	return nil
}
