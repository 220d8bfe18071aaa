package secrets_test

import (
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/apikey"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/secrets"
)

// each writes some characters of a text in another way: those of a set, and any with a chance.
func each(r *rand.Rand, text, set string, chance float64, format func(c rune) string) string {
	var b strings.Builder
	for _, c := range text {
		if strings.ContainsRune(set, c) || r.Float64() < chance {
			b.WriteString(format(c))
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// spellings are what converters make of a text: of the signs in a token, or of any character.
var spellings = map[string]func(r *rand.Rand, text string) string{
	"Markdown": func(r *rand.Rand, text string) string {
		return each(r, text, "_-.+*#:/@", 0, func(c rune) string { return `\` + string(c) })
	},
	"decimal references": func(r *rand.Rand, text string) string {
		return each(r, text, "_-", 0.2, func(c rune) string { return fmt.Sprintf("&#%d;", c) })
	},
	"hexadecimal references": func(r *rand.Rand, text string) string {
		return each(r, text, "_-", 0.2, func(c rune) string { return fmt.Sprintf("&#x%x;", c) })
	},
	"long references": func(r *rand.Rand, text string) string {
		return each(r, text, "_-", 1, func(c rune) string { return fmt.Sprintf("&#X%06X;", c) })
	},
	"named references": func(_ *rand.Rand, text string) string {
		return strings.NewReplacer("_", "&lowbar;", "-", "&#45;", "/", "&sol;", ":", "&colon;", "@", "&commat;", "+", "&plus;", "=", "&equals;", ".", "&period;").Replace(text)
	},
	"JSON": func(r *rand.Rand, text string) string {
		return each(r, text, "_", 0.2, func(c rune) string { return fmt.Sprintf(`\u%04x`, c) })
	},
	"slashes of JSON": func(_ *rand.Rand, text string) string { return strings.ReplaceAll(text, "/", `\/`) },
	"JSON in JSON": func(r *rand.Rand, text string) string {
		return each(r, text, "_", 0.1, func(c rune) string { return fmt.Sprintf(`\\u%04X`, c) })
	},
	"JavaScript": func(r *rand.Rand, text string) string {
		return each(r, text, "_", 0.2, func(c rune) string { return fmt.Sprintf(`\u{%x}`, c) })
	},
	"C": func(r *rand.Rand, text string) string {
		return each(r, text, "_", 0.2, func(c rune) string { return fmt.Sprintf(`\x%02x`, c) })
	},
	"HTML in HTML": func(_ *rand.Rand, text string) string {
		return html.EscapeString(strings.NewReplacer("_", "&#95;", "-", "&#45;").Replace(text))
	},
	"Markdown twice": func(r *rand.Rand, text string) string {
		return each(r, text, "_", 0, func(c rune) string { return `\\\` + string(c) })
	},
}

// tokens are secrets of a certain kind, found as they are.
var tokens = map[string]func(r *rand.Rand) string{
	"github-pat": pat,
	"github-fine-grained-pat": func(r *rand.Rand) string {
		return "github" + "_pat_" + random(r, letters, 22) + "_" + random(r, letters, 59)
	},
	"groq-token":      func(r *rand.Rand) string { return "gsk" + "_" + random(r, letters, 52) },
	"anthropic-token": func(r *rand.Rand) string { return "sk-" + "ant-oat01-" + random(r, letters, 95) },
	"wasmgate-key":    func(r *rand.Rand) string { return apikey.Compose(random(r, letters, 12), random(r, letters, 43)) },
	"url-credentials": func(r *rand.Rand) string { return "postgres://admin:" + random(r, letters, 20) + "@db.corp.net/app" },
}

func TestSpellingsOfConverters(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true, Report: []string{secrets.RuleGeneric}}), seed.Rand(t)
	for name, spell := range spellings {
		for kind, token := range tokens {
			for range 5 {
				plain := token(r)
				for _, format := range []string{"%s", "before %s, after", "* one \\* two\n* %s\n", `{"a": "%s"}`, "é%s é"} {
					text := fmt.Sprintf(format, spell(r, plain))
					clean, found := s.Redact(text)
					if !strings.Contains(clean, "[redacted: "+kind+"]") || len(found) != 1 {
						t.Errorf("%s of %s: %q became %q, %v", name, kind, text, clean, found)
						continue
					}
					start, end, _ := strings.Cut(format, "%s")
					if kind != "url-credentials" && clean != start+"[redacted: "+kind+"]"+end {
						t.Errorf("%s of %s: %q became %q", name, kind, text, clean)
					}
					if want := s.Find(plain)[0].Fingerprint; found[0].Fingerprint != want {
						t.Errorf("%s of %s: another fingerprint than the plain one", name, kind)
					}
				}
			}
		}
	}
}

// A token over two lines, as terminals, mails and sources have it.
func TestSecretsOverTwoLines(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true, Report: []string{secrets.RuleGeneric}}), seed.Rand(t)
	for _, end := range []string{"\n", "\r\n", "\n    ", "\n> ", "=\n", "=\r\n", "\\\n", "\\\n\t"} {
		for kind, token := range tokens {
			if kind == "url-credentials" {
				continue
			}
			for range 20 {
				plain := token(r)
				at := len(plain) - 3 - r.IntN(20)
				text := "use " + plain[:at] + end + plain[at:] + " for this\nand nothing else\n"
				// Of a token that is a token without its end, that end may stay.
				if clean, found := s.Redact(text); !strings.HasPrefix(clean, "use [redacted: "+kind+"]") || !strings.HasSuffix(clean, " for this\nand nothing else\n") ||
					kind != "groq-token" && kind != "anthropic-token" && strings.Contains(clean, plain[at:]) {
					t.Errorf("%s, with %q: %q became %q, %v", kind, end, text, clean, found)
				}
				text = plain + "\nversion2.1 is next\n"
				if clean, _ := s.Redact(text); clean != "[redacted: "+kind+"]\nversion2.1 is next\n" {
					t.Errorf("%s: the next line is taken: %q became %q", kind, text, clean)
				}
			}
		}
	}
}

// A document in JSON that is a part of a text.
func TestJSONInText(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true}), seed.Rand(t)
	for kind, token := range tokens {
		inner, err := json.Marshal(map[string]string{"note": "one\n" + token(r) + "\ttwo", "path": `C:\new\table`})
		if err != nil {
			t.Fatal(err)
		}
		outer, err := json.Marshal(map[string]string{"body": string(inner)})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(inner), string(outer), "q=" + url.QueryEscape(string(inner))} {
			if clean, _ := s.Redact(text); !strings.Contains(clean, "[redacted: "+kind+"]") {
				t.Errorf("%s: %q became %q", kind, text, clean)
			}
		}
	}
}
