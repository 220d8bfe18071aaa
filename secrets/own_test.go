package secrets_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/apikey"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/secrets"
)

// Every token that the expression of a provider describes is found, and as the secret of
// a provider; a placeholder of the same form is not.
func TestProviders(t *testing.T) {
	s, r := newScanner(t, secrets.Options{}), seed.Rand(t)
	rules := secrets.OwnRules()
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		source := rules[id]
		if id == secrets.RulePartialKey {
			continue
		}
		if len(secrets.KeywordsOf(source)) == 0 {
			t.Errorf("%s: without a keyword it is searched in every text", id)
		}
		tree, err := syntax.Parse(source, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		const tries = 100
		for range tries {
			token := secret(r, tree)
			for _, format := range []string{"%s", "use %s, please", `{"value": "%s"}`, "A=%s\nB=1"} {
				text := fmt.Sprintf(format, token)
				if clean, _ := s.Redact(text); clean != text && !strings.Contains(clean, token) {
					found++
				} else if testing.Verbose() {
					t.Logf("%s: %q", id, text)
				}
			}
		}
		if found < 4*tries*99/100 {
			t.Errorf("%s: %d of %d found", id, found, 4*tries)
		}
		for _, filler := range []string{"x", "0", "*", "."} {
			text := strings.Map(func(c rune) rune {
				if strings.ContainsRune(letters+"+/_-=.", c) {
					return rune(filler[0])
				}
				return c
			}, secret(r, tree))
			if clean, found := s.Redact(text); clean != text {
				t.Errorf("%s: %q is redacted: %v", id, text, found)
			}
		}
	}
}

func TestGatewayKeys(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true, Report: []string{secrets.RuleGeneric}}), seed.Rand(t)
	key := apikey.Compose(random(r, letters, 12), random(r, letters+"-_", 43))
	for _, format := range []string{"%s", "my key is %s.", `{"key": "%s"}`, "Authorization: Bearer %s\n", "x%sy"} {
		text := fmt.Sprintf(format, key)
		if clean, found := s.Redact(text); clean != fmt.Sprintf(format, "[redacted: wasmgate-key]") {
			t.Errorf("%q became %q, %v", text, clean, found)
		}
	}
	if clean, _ := s.RedactNamed("", "key", key); clean != "[redacted: wasmgate-key]" {
		t.Errorf("under a name it became %q", clean)
	}
	mistyped := key[:30] + string(key[30]^1) + key[31:]
	if clean, _ := s.Redact(mistyped); clean != mistyped {
		t.Errorf("a key whose checksum is wrong became %q", clean)
	}
}

// keyLines are the lines of a made-up private key.
func keyLines(r *rand.Rand, n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = random(r, letters+"+/", 64)
	}
	lines[n-1] = lines[n-1][:30] + "=="
	return lines
}

func TestPartsOfPrivateKeys(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true}), seed.Rand(t)
	for _, label := range []string{"RSA PRIVATE" + " KEY", "PRIVATE" + " KEY", "OPENSSH PRIVATE" + " KEY", "ENCRYPTED PRIVATE" + " KEY", "PGP PRIVATE" + " KEY BLOCK"} {
		for _, end := range []string{"\n", "\r\n", `\n`, `\r\n`, "\n    ", "\n> "} {
			lines := keyLines(r, 12)
			head := "-----BEGIN " + label + "-----" + end
			tail := end + "-----END " + label + "-----"
			for n := 1; n < 12; n++ {
				text := "before\n" + head + strings.Join(lines[:n], end)
				if clean, found := s.Redact(text); !strings.HasPrefix(clean, "before\n[redacted:") || strings.Contains(clean, lines[n-1]) {
					t.Errorf("%s: the first %d lines, with %q, became %q, %v", label, n, end, clean, found)
				}
				if n > 10 {
					continue // a last line alone is short
				}
				text = strings.Join(lines[n:], end) + tail + "\nafter"
				if clean, found := s.Redact(text); !strings.HasSuffix(clean, "]\nafter") || strings.Contains(clean, lines[10]) {
					t.Errorf("%s: the lines from %d on, with %q, became %q, %v", label, n, end, clean, found)
				}
			}
			whole := head + strings.Join(lines, end) + tail
			if clean, _ := s.Redact(whole); clean != "[redacted: private-key]" {
				t.Errorf("%s: a whole key became %q", label, clean)
			}
		}
	}
	for _, text := range []string{
		"-----BEGIN RSA PRIVATE" + " KEY-----\n...\n-----END RSA PRIVATE" + " KEY-----",
		"A file that begins with -----BEGIN PRIVATE" + " KEY----- is a key.\n\nAfter that line comes base64, and then the last line.",
		"-----BEGIN CERTIFICATE-----\n" + strings.Join(keyLines(r, 9), "\n"),
		"-----BEGIN PUBLIC" + " KEY-----\n" + strings.Join(keyLines(r, 4), "\n") + "\n-----END PUBLIC" + " KEY-----",
	} {
		if clean, found := s.Redact(text); clean != text {
			t.Errorf("%q became %q, %v", text, clean, found)
		}
	}
}

func TestRulesOfTheConfiguration(t *testing.T) {
	s := newScanner(t, secrets.Options{Rules: []secrets.Rule{
		{ID: "acme-key", Regexp: `\bacme_[a-z0-9]{8}\b`},
		{ID: "badge", Regexp: `\b[A-Z]{3}-(\d{6})\b`},
		{ID: "staff", Regexp: `(?i)staff-(?:no|id): (\w+)`},
	}})
	for text, want := range map[string]string{
		"use acme_1a2b3c4d now":   "use [redacted: acme-key] now",
		"use acme_1a2b now":       "use acme_1a2b now",
		"badge XYZ-123456":        "badge XYZ-[redacted: badge]",
		"STAFF-ID: nulltruefalse": "STAFF-ID: [redacted: staff]",
		base64.StdEncoding.EncodeToString([]byte("acme_1a2b3c4d, plain")): base64.StdEncoding.EncodeToString([]byte("acme_1a2b3c4d, plain")),
	} {
		if clean, _ := s.Redact(text); clean != want {
			t.Errorf("%q became %q, want %q", text, clean, want)
		}
	}
	rule := secrets.Rule{ID: "acme-key", Regexp: "acme_[a-z]{8}"}
	s = newScanner(t, secrets.Options{Rules: []secrets.Rule{rule}, Decode: true, Report: []string{"acme-key"}, Allow: []secrets.Allow{{Rule: "acme-key", Regexp: "example"}}})
	if found := s.Find("acme_abcdefgh acme_examples"); len(found) != 1 || found[0].Redacted {
		t.Errorf("one is reported, and one is allowed: %v", found)
	}
	for name, rules := range map[string][]secrets.Rule{
		"no id":        {{Regexp: "x"}},
		"an odd id":    {{ID: "A b", Regexp: "x"}},
		"a known id":   {{ID: "github-pat", Regexp: "x"}},
		"one id twice": {rule, rule},
		"no regexp":    {{ID: "x"}},
		"a bad regexp": {{ID: "x", Regexp: "("}},
		"empty match":  {{ID: "x", Regexp: "x*"}},
	} {
		if _, err := secrets.New(secrets.Options{Rules: rules}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestKeywordsOf(t *testing.T) {
	for source, want := range map[string][]string{
		`\bacme_[a-z]{8}`:       {"acme_"},
		`(?i)TOKEN-\d+`:         {"token-"},
		`[0-9]{4}-(?:ab|cd)-x`:  {"-ab-x", "-cd-x"},
		`(?:ab\d+|cd\d+)`:       {"ab", "cd"},
		`(?:ab\d+|\d+)`:         nil,
		`\d{8}[A-Z]`:            nil,
		`é\d+`:                  nil,
		`(?:long_prefix)?x\d+y`: nil,
	} {
		got := secrets.KeywordsOf(source)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}
