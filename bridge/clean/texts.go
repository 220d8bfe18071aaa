package clean

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/media"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/sanitize"
)

// Texts chooses among sanitizers by [Sanitize]; it is the gate's.
type Texts struct {
	choice    Sanitize
	byProfile map[string]*sanitize.Sanitizer
	links     sanitize.Links
}

var (
	_ gate.ContentChecker = (*Texts)(nil)
)

// NewTexts returns what chooses as it is said.
func NewTexts(choice Sanitize) (*Texts, error) {
	s := &Texts{choice: choice, byProfile: make(map[string]*sanitize.Sanitizer)}
	if choice.Links != nil {
		var err error
		if s.links, err = sanitize.NewLinks(choice.Links); err != nil {
			return nil, fmt.Errorf("sanitize: links: %w", err)
		}
	}
	for _, p := range sanitize.Profiles() {
		one, err := sanitize.New(sanitize.Options{Profile: p, Links: s.links, Max: choice.Max})
		if err != nil {
			return nil, err
		}
		s.byProfile[string(p)] = one
	}
	if choice.Profile == "" {
		s.choice.Profile = string(sanitize.Text)
	}
	names := []string{s.choice.Profile}
	for _, r := range append(append([]Rule{}, choice.Tools...), choice.MIME...) {
		names = append(names, r.Profile)
	}
	for _, p := range choice.Servers {
		names = append(names, p)
	}
	for _, name := range names {
		if s.byProfile[name] == nil {
			return nil, unknownProfile(name)
		}
	}
	return s, nil
}

// profile returns the profile of a text: what is configured, or what a decision asks
// for where that is stricter.
func (s *Texts) profile(t gate.Text) string {
	chosen := s.configured(t)
	if t.Profile == "" {
		return chosen
	}
	return string(sanitize.Stricter(sanitize.Profile(chosen), sanitize.Profile(t.Profile)))
}

// configured returns what the operator says of the tool or its server. Otherwise the kind of the
// text decides: source is left as it is where nothing stricter than the profile for prose was
// chosen for all, and a page is treated as HTML. A media type, which the server names, makes it
// stricter at most.
func (s *Texts) configured(t gate.Text) string {
	for _, r := range s.choice.Tools {
		if r.matches(t.Tool) {
			return r.Profile
		}
	}
	if p := s.choice.Servers[t.Server]; p != "" {
		return p
	}
	chosen := sanitize.Profile(s.choice.Profile)
	switch {
	case chosen != sanitize.Text:
	case t.Kind == provenance.KindCode:
		chosen = sanitize.Code
	case hasType(t.MIME, "text/html"):
		chosen = sanitize.HTML
	}
	for _, r := range s.choice.MIME {
		if t.MIME != "" && r.matches(t.MIME) {
			return string(sanitize.Stricter(chosen, sanitize.Profile(r.Profile)))
		}
	}
	return string(chosen)
}

// hasType reports whether a media type is one of those, with parameters or without.
func hasType(mime string, types ...string) bool {
	kind, _, _ := strings.Cut(mime, ";")
	kind = strings.TrimSpace(kind)
	return slices.ContainsFunc(types, func(one string) bool { return strings.EqualFold(kind, one) })
}

// Check implements [gate.ContentChecker].
func (s *Texts) Check(c gate.Content) gate.ContentVerdict {
	as := gate.Text{Server: c.Server, Tool: c.Tool, Profile: c.Profile, Kind: c.Kind, MIME: c.MIME}
	switch {
	case s.profile(as) == string(sanitize.Off):
		return gate.ContentVerdict{}
	case c.Icon && !s.links.Image(c.URI):
		return gate.ContentVerdict{Refused: "icon from elsewhere"}
	case !c.Icon && c.URI != "" && !s.links.Resource(c.URI):
		return gate.ContentVerdict{Refused: "link to a resource that is not allowed"}
	case c.Data == "":
		return gate.ContentVerdict{}
	}
	m := media.Of(c.MIME, c.Data)
	if m.Refused != "" {
		return gate.ContentVerdict{Refused: m.Refused}
	}
	v := gate.ContentVerdict{}
	if !strings.HasPrefix(strings.ToLower(c.MIME), m.MIME) {
		v.MIME = m.MIME
	}
	if !m.Text {
		return v
	}
	text, ok := media.Decode(c.Data)
	if ok {
		v.Text = &text
		return v
	}
	if raw, err := base64.StdEncoding.DecodeString(c.Data); err == nil { // of another encoding that includes ASCII
		as.Text = string(bytes.ToValidUTF8(raw, []byte("?")))
		if clean, _ := s.Sanitize(as); clean == as.Text {
			return v
		}
	}
	return gate.ContentVerdict{Refused: "text that is not in UTF-8, and not safe"}
}

// of returns the sanitizer for a text. A policy may ask for a profile that does not exist: that is
// taken for the strictest.
func (s *Texts) of(t gate.Text) *sanitize.Sanitizer {
	if one := s.byProfile[s.profile(t)]; one != nil {
		return one
	}
	return s.byProfile[string(sanitize.Strict)]
}

// Sanitize implements [gate.Sanitizer].
func (s *Texts) Sanitize(t gate.Text) (string, []gate.Finding) {
	sanitized := s.of(t).Sanitize
	if t.MIME != "" && hasType(t.MIME, "image/svg+xml", "image/svg", "image/x-svg") {
		sanitized = s.of(t).Drawing
	}
	clean, found := sanitized(t.Text)
	return clean, inGate(found)
}

// Open is what the gate asks of a sanitizer of texts that a client shows side by side.
func (s *Texts) Open(t gate.Text) bool { return s.of(t).Open(t.Text) }

// Inert is what the gate asks of a sanitizer of texts that a client shows side by side.
func (s *Texts) Inert(t gate.Text) (string, []gate.Finding) {
	clean, found := s.of(t).Inert(t.Text)
	return clean, inGate(found)
}

// Together is what the gate asks of a sanitizer of texts that a client shows side by side.
func (s *Texts) Together(t gate.Text, texts []string) ([]string, []gate.Finding) {
	clean, found := s.of(t).Together(texts)
	return clean, inGate(found)
}

// inGate returns findings in the gate's words.
func inGate(found []sanitize.Finding) []gate.Finding {
	if len(found) == 0 {
		return nil
	}
	findings := make([]gate.Finding, len(found))
	for i, f := range found {
		findings[i] = gate.Finding{Rule: f.Rule, Count: f.Count, Removed: f.Removed}
	}
	return findings
}

// With returns what chooses a profile for a server, too; "" is that of all.
func (s Texts) With(server, profile string) *Texts {
	servers := maps.Clone(s.choice.Servers)
	if servers == nil {
		servers = make(map[string]string)
	}
	if servers[server] = profile; profile == "" {
		delete(servers, server)
	}
	s.choice.Servers = servers
	return &s
}

// Same reports whether others make every text into the same.
func (s *Texts) Same(o *Texts) bool {
	a, b := s.choice, o.choice
	a.Secrets, b.Secrets = SecretRules{}, SecretRules{}
	return reflect.DeepEqual(a, b)
}

// Knows returns an error for a profile that does not exist; "" is no profile, and no error.
func (s *Texts) Knows(profile string) error {
	if profile != "" && s.byProfile[profile] == nil {
		return unknownProfile(profile)
	}
	return nil
}

func unknownProfile(name string) error {
	return fmt.Errorf("sanitize: unknown profile %q; these are known: %v", name, sanitize.Profiles())
}

// A Rule gives a profile to what matches Pattern: a literal, or a literal with
// * at its end.
type Rule struct{ Pattern, Profile string }

func (r Rule) matches(s string) bool { return match.Pattern(r.Pattern).Matches(s) }

// Sanitize chooses the profile for a text: of the first rule in Tools that
// matches the tool, else its server's, else of the first rule in MIME that
// matches, else Profile. Empty means text.
type Sanitize struct {
	Profile string
	Tools   []Rule // patterns of qualified names
	Servers map[string]string
	MIME    []Rule // patterns of MIME types
	Secrets SecretRules
	// Links are the targets to which links and images stay active, see
	// [sanitize.NewLinks]. Nil leaves those that fetch and carry nothing.
	Links []string
	// Max bounds what texts of a result may grow to, in bytes; zero sets no bound.
	Max int
}
