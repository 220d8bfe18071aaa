package clean

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/secrets"
)

// What the operator says of a tool goes before what is said of its server; a media type, which
// the server names, makes the profile stricter at most, and so does a decision.
func TestProfile(t *testing.T) {
	s, err := NewTexts(Sanitize{
		Tools:   []Rule{{"one__raw*", "off"}},
		Servers: map[string]string{"one": "code"},
		MIME:    []Rule{{"text/html", "strict"}, {"text/*", "off"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		of   gate.Text
		want string
	}{
		{gate.Text{Server: "one", Tool: "one__raw_x", MIME: "text/html"}, "off"},
		{gate.Text{Server: "one", Tool: "one__raw_x", Profile: "strict"}, "strict"},
		{gate.Text{Server: "one", Tool: "one__x"}, "code"},
		{gate.Text{Server: "two", Tool: "two__x"}, "text"},
		{gate.Text{Server: "two", Tool: "two__x", Kind: provenance.KindCode}, "code"},
		{gate.Text{Server: "two", Tool: "two__x", MIME: "text/html"}, "strict"},
		{gate.Text{Server: "two", Tool: "two__x", MIME: "text/plain"}, "text"},
	} {
		if got := s.profile(tt.of); got != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.of, got, tt.want)
		}
	}
	plain, err := NewTexts(Sanitize{})
	if err != nil {
		t.Fatal(err)
	}
	for mime, want := range map[string]string{"text/html": "html", "Text/HTML; charset=utf-8": "html", "text/htmlx": "text", "": "text"} {
		if got := plain.profile(gate.Text{Tool: "two__x", MIME: mime}); got != want {
			t.Errorf("%s: got %s, want %s", mime, got, want)
		}
	}
	other := s.With("two", "off")
	if got := other.profile(gate.Text{Server: "two", Tool: "two__x"}); got != "off" || s.Same(other) || !s.Same(other.With("two", "")) {
		t.Errorf("with a profile for the server it is %s", got)
	}
	if s.Knows("loose") == nil || s.Knows("strict") != nil || s.Knows("") != nil {
		t.Error("a profile that nobody knows is known, or one that is known is not")
	}
}

func TestTreat(t *testing.T) {
	s, _, err := NewSecrets(SecretRules{Results: "allow", Tools: []SecretRule{{Pattern: "one__*", Arguments: "allow"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		server             string
		arguments, results gate.Treatment
	}{{"one", "allow", "allow"}, {"two", "", "allow"}} {
		arguments, results := s.Treat(&gate.Tool{Name: gate.ToolName{Server: tt.server, Tool: "x"}})
		if arguments != tt.arguments || results != tt.results {
			t.Errorf("%s: arguments %q, results %q", tt.server, arguments, results)
		}
	}
	if s.Returned() != nil {
		t.Error("words are remembered, and none could be taken for a secret")
	}
	all, _, err := NewSecrets(SecretRules{Report: []string{}}, nil)
	if err != nil || all.Returned() == nil {
		t.Errorf("what only looks like a secret is redacted, also where the server has it from a result: %v", err)
	}
	if _, _, err := NewSecrets(SecretRules{Skip: []string{secrets.RuleGeneric, "no-such-rule"}}, nil); err == nil {
		t.Error("a rule that there is not is skipped")
	}
}

// A rule of the configuration holds in calls and in the log.
func TestOwnRules(t *testing.T) {
	s, log, err := NewSecrets(SecretRules{Rules: []secrets.Rule{{ID: "acme-key", Regexp: `\bacme_[a-z]{8}\b`}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "use [redacted: acme-key]"
	if clean, found := s.Redact("/a", "a", "use acme_abcdefgh"); clean != want || len(found) != 1 || found[0].Rule != "secret/acme-key" {
		t.Errorf("in a call: %q, %v", clean, found)
	}
	if clean := log("a", "use acme_abcdefgh"); clean != want {
		t.Errorf("in the log: %q", clean)
	}
	if _, _, err := NewSecrets(SecretRules{Rules: []secrets.Rule{{ID: "github-pat", Regexp: "x"}}}, nil); err == nil {
		t.Error("a rule takes the id of another")
	}
}
