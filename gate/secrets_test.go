package gate_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// spy finds the word KEY.
type spy struct{ arguments, results gate.Treatment }

func (s spy) Treat(*gate.Tool) (gate.Treatment, gate.Treatment) { return s.arguments, s.results }

func (s spy) Redact(_, _, text string) (string, []gate.Finding) {
	if !strings.Contains(text, "KEY") {
		return text, nil
	}
	return strings.ReplaceAll(text, "KEY", "[redacted: word]"), []gate.Finding{{Rule: "secret/word", Count: 1, Removed: true}}
}

func TestSecrets(t *testing.T) {
	tests := map[string]struct {
		spy      spy
		args     string
		result   string // text
		approver bool
		code     string
		sent     string // text of the argument that the upstream got; "" if it was not called
		got      string // text of the result
		rules    []string
	}{
		"in arguments, redacted":                     {spy{}, "a KEY", "ok", false, "ok", "a [redacted: word]", "ok", []string{"secret/word arguments:/path"}},
		"in arguments, refused":                      {spy{arguments: "refuse"}, "a KEY", "ok", false, "refused_sanitize", "", "", []string{"secret/word arguments:/path"}},
		"in arguments, allowed":                      {spy{arguments: "allow"}, "a KEY", "ok", false, "ok", "a KEY", "ok", nil},
		"in arguments, a person is asked":            {spy{arguments: "ask"}, "a KEY", "ok", true, "ok", "a KEY", "ok", []string{"secret/word arguments:/path"}},
		"in arguments, nobody can be asked":          {spy{arguments: "ask"}, "a KEY", "ok", false, "refused_approve", "", "", []string{"secret/word arguments:/path"}},
		"no secret, nobody is asked":                 {spy{arguments: "ask"}, "a", "ok", false, "ok", "a", "ok", nil},
		"in arguments, by a treatment nobody knows":  {spy{arguments: "hide"}, "a KEY", "ok", false, "refused_authorize", "", "", nil},
		"in results, redacted":                       {spy{}, "a", "the KEY", false, "ok", "a", "the [redacted: word]", []string{"secret/word /content/0/text"}},
		"in results, refused":                        {spy{results: "refuse"}, "a", "the KEY", false, "refused_sanitize", "a", "", nil},
		"in results, allowed":                        {spy{results: "allow"}, "a", "the KEY", false, "ok", "a", "the KEY", nil},
		"in results, by a treatment nobody knows":    {spy{results: "hide"}, "a", "the KEY", false, "refused_sanitize", "a", "", nil},
		"in a JSON text of results, redacted within": {spy{}, "a", `{"k":"KEY"}`, false, "ok", "a", `{"k":"[redacted: word]"}`, []string{"secret/word /content/0/text/k"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.tool.Output = nil
			sent := ""
			r.invoke = func(_ context.Context, c *gate.Call) (gate.Result, error) {
				sent = c.Args.Get("path").Text()
				return answer(`{"content":[{"type":"text","text":` + strconv.Quote(tt.result) + `}]}`), nil
			}
			parts := r.parts()
			parts.Secrets = tt.spy
			if tt.approver {
				parts.Approver = approverFunc(func(context.Context, gate.Question) (gate.Approval, error) {
					return gate.Approval{ID: "a1", By: "test"}, nil
				})
			}
			g := newGate(t, parts)
			c := newCall()
			c.Args = gate.MustDoc(`{"path":` + strconv.Quote(tt.args) + `}`)
			res, err := g.Do(t.Context(), c)
			if got := gate.Code(err); got != tt.code {
				t.Fatalf("code %s, want %s: %v", got, tt.code, err)
			}
			if sent != tt.sent {
				t.Errorf("the upstream got %q, want %q", sent, tt.sent)
			}
			if got := res.Doc.At("/content/0/text").Text(); got != tt.got {
				t.Errorf("the client got %q, want %q", got, tt.got)
			}
			var rules []string
			for _, f := range r.done(t).Findings {
				rules = append(rules, f.Rule+" "+f.At)
			}
			if !slices.Equal(rules, tt.rules) {
				t.Errorf("found %q, want %q", rules, tt.rules)
			}
			if tt.code == "refused_sanitize" && err != nil && strings.Contains(err.Error(), "KEY") {
				t.Errorf("the refusal holds the secret: %v", err)
			}
		})
	}
}

// A secret that is refused is refused however much else was found before it, though only
// so many findings are kept.
func TestSecretBehindManyFindings(t *testing.T) {
	for name, spies := range map[string]spy{"refused": {results: "refuse"}, "redacted": {}} {
		r := newRig()
		r.tool.Output = nil
		texts := slices.Repeat([]string{`{"type":"text","text":"FOUND"}`}, 300)
		texts = append(texts, `{"type":"text","text":"the KEY"}`)
		r.invoke = func(context.Context, *gate.Call) (gate.Result, error) {
			return answer(`{"content":[` + strings.Join(texts, ",") + `]}`), nil
		}
		parts := r.parts()
		parts.Secrets = spies
		parts.Sanitizer = finder{}
		res, err := newGate(t, parts).Do(t.Context(), newCall())
		if code := gate.Code(err); code != map[string]string{"refused": "refused_sanitize", "redacted": "ok"}[name] {
			t.Errorf("%s: %s: %v", name, code, err)
		}
		if strings.Contains(res.Doc.String(), "KEY") {
			t.Errorf("%s: the client got the secret", name)
		}
	}
}

// finder finds something in each text that says so, and changes nothing.
type finder struct{}

func (finder) Sanitize(t gate.Text) (string, []gate.Finding) {
	if t.Text != "FOUND" {
		return t.Text, nil
	}
	return t.Text, []gate.Finding{{Rule: "test", Count: 1}}
}

// A caller from whom a tool is hidden must not learn of it by what its arguments
// are refused for.
func TestSecretsDoNotShowHiddenTools(t *testing.T) {
	r := newRig()
	r.decide = func(gate.Query) gate.Decision { return gate.Decision{Hidden: true} }
	parts := r.parts()
	parts.Secrets = spy{arguments: "refuse"}
	g := newGate(t, parts)
	c := newCall()
	c.Args = gate.MustDoc(`{"path":"KEY"}`)
	if _, err := g.Do(t.Context(), c); gate.Code(err) != "refused_authorize" || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// If a part of the _meta holds a secret, no server gets that part, whatever becomes of arguments,
// unless secrets are allowed. The rest stays as it is, and so does the token of progress, which
// stays here.
func TestSecretsInMeta(t *testing.T) {
	const meta = `{"progressToken":"KEY","a.example/b":{"c":["a KEY"]},"d~e/f":"KEY","a.example/KEY":1,"a.example/g":"x"}`
	for treat, want := range map[gate.Treatment]string{
		"redact": `{"progressToken":"KEY","a.example/g":"x"}`,
		"ask":    `{"progressToken":"KEY","a.example/g":"x"}`,
		"refuse": `{"progressToken":"KEY","a.example/g":"x"}`,
		"allow":  meta,
	} {
		r := newRig()
		got := ""
		r.invoke = func(_ context.Context, c *gate.Call) (gate.Result, error) {
			got = c.Meta.String()
			return answer(`{"structuredContent":1}`), nil
		}
		parts := r.parts()
		parts.Secrets = spy{arguments: treat}
		g := newGate(t, parts)
		c := newCall()
		c.Meta = gate.MustDoc(meta)
		if _, err := g.Do(t.Context(), c); err != nil || got != want {
			t.Errorf("%s: the server got %s, %v", treat, got, err)
		}
		if found := len(r.done(t).Findings); (found == 3) != (treat != "allow") {
			t.Errorf("%s: %d findings", treat, found)
		}
	}
}
