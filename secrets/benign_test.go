package secrets_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/secrets"
)

const hexDigits = "0123456789abcdef"

func uuid(r *rand.Rand) string {
	h := func(n int) string { return random(r, hexDigits, n) }
	return h(8) + "-" + h(4) + "-4" + h(3) + "-8" + h(3) + "-" + h(12)
}

// ordinary are results as tools give them, with much that looks random.
var ordinary = map[string]func(r *rand.Rand) string{
	"rows of a database": func(r *rand.Rand) string {
		return fmt.Sprintf(`{"rows":[{"id":"%s","name":"Ada","created":%d,"etag":"%s"}],"cursor":"%s"}`, uuid(r), r.Uint64()>>20, random(r, hexDigits, 32), random(r, letters, 40))
	},
	"a log of commits": func(r *rand.Rand) string {
		return fmt.Sprintf("commit %s\nAuthor: Ada <ada@example.com>\nDate:   Tue Nov 3 10:00:00 2026 +0100\n\n    Read the key from the file, not from the token\n", random(r, hexDigits, 40))
	},
	"an issue": func(r *rand.Rand) string {
		return fmt.Sprintf(`{"id":%d,"node_id":"%s","number":%d,"url":"https://api.example.com/repos/a/b/issues/7","head":{"sha":"%s"},"author_association":"MEMBER"}`,
			r.Uint32(), base64.StdEncoding.EncodeToString([]byte("05:Issue"+random(r, "0123456789", 9))), r.IntN(9999), random(r, hexDigits, 40))
	},
	"images of containers": func(r *rand.Rand) string {
		return fmt.Sprintf("REPOSITORY   TAG      IMAGE ID       DIGEST\nnginx   1.29   %s   sha256:%s\n", random(r, hexDigits, 12), random(r, hexDigits, 64))
	},
	"a lock file": func(r *rand.Rand) string {
		return fmt.Sprintf("\"node_modules/left-pad\": {\n  \"version\": \"1.3.0\",\n  \"resolved\": \"https://registry.example.com/left-pad/-/left-pad-1.3.0.tgz\",\n  \"integrity\": \"sha512-%s==\"\n}\n", random(r, letters+"+/", 86))
	},
	"a picture": func(r *rand.Rand) string {
		b := make([]byte, 3000)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA" + base64.StdEncoding.EncodeToString(b)
	},
	"pods of a cluster": func(r *rand.Rand) string {
		return fmt.Sprintf("NAME   READY   STATUS\napi-%s-%s   1/1   Running\nuid: %s\nresourceVersion: \"%d\"\n", random(r, hexDigits, 10), random(r, letters, 5), uuid(r), r.Uint32())
	},
	"a search": func(r *rand.Rand) string {
		return fmt.Sprintf("1. How to rotate an API key - https://example.com/q/%d?utm_id=%s\n2. What is an access token? - https://example.com/wiki/Access_token\n", r.Uint32(), random(r, letters, 12))
	},
	"a page of a document": func(r *rand.Rand) string {
		return fmt.Sprintf("Page %s\nlast_edited: 2026-11-03T10:00:00.000Z\nThe secret of good tea, said the author, is water: access to it is the key.\nparent: %s\n", uuid(r), uuid(r))
	},
	"a message": func(r *rand.Rand) string {
		return fmt.Sprintf(`{"ok":true,"messages":[{"type":"message","ts":"%d.%06d","client_msg_id":"%s","text":"Passwords must be changed by Friday."}]}`, 1700000000+r.IntN(1e8), r.IntN(1e6), uuid(r))
	},
}

// The figure that is aimed at is one in a hundred.
func TestOrdinaryResultsAreLeftAlone(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true}), seed.Rand(t)
	const each = 200
	touched, kinds := 0, map[string]int{}
	for name, result := range ordinary {
		for range each {
			text := result(r)
			if clean, found := s.Redact(text); clean != text {
				touched++
				kinds[found[0].Rule+" in "+name]++
			}
		}
	}
	total := each * len(ordinary)
	t.Logf("%d of %d touched: %v", touched, total, kinds)
	if touched*100 > total {
		t.Errorf("%d of %d ordinary results are changed", touched, total)
	}
}

func TestBenignTextsOfTheCorporaAreLeftAlone(t *testing.T) {
	s := newScanner(t, secrets.Options{Decode: true})
	texts := map[string]bool{}
	add := func(name string, line func(raw json.RawMessage)) {
		text, err := read(filepath.Join(corpus(t), name))
		if err != nil {
			t.Fatal(err)
		}
		for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				t.Fatal(err)
			}
			line(raw)
		}
	}
	add("corpora/tools/benign.jsonl", func(raw json.RawMessage) { texts[string(raw)] = true })
	for _, suite := range []string{"banking", "workspace"} {
		add("agentdojo/"+suite+".pairs.jsonl.gz", func(raw json.RawMessage) {
			var pair struct{ Trace []struct{ Output string } }
			if err := json.Unmarshal(raw, &pair); err != nil {
				t.Fatal(err)
			}
			for _, call := range pair.Trace {
				texts[call.Output] = true
			}
		})
	}
	touched, kinds := 0, map[string]int{}
	for text := range texts {
		if clean, found := s.Redact(text); clean != text {
			touched++
			kinds[found[0].Rule]++
		}
	}
	t.Logf("%d of %d touched: %v", touched, len(texts), kinds)
	if len(texts) < 1000 || touched*100 > len(texts) {
		t.Errorf("%d of %d benign texts are changed", touched, len(texts))
	}
}

// checkDigit makes digits end in the one that Luhn's sum asks for.
func checkDigit(digits string) string {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return digits + string(rune('0'+(10-sum%10)%10))
}

// checkNumbers makes an IBAN from a country and an account of digits.
func checkNumbers(country, account string) string {
	rest := 0
	for _, c := range account + country + "00" {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	return fmt.Sprintf("%s%02d%s", country, 98-rest, account)
}

func grouped(s string) string {
	var b strings.Builder
	for i, c := range s {
		if i > 0 && i%4 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return b.String()
}

func TestNumbersThatProveThemselves(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Checked: true}), seed.Rand(t)
	plain := newScanner(t, secrets.Options{})
	digits := func(n int) string { return random(r, "0123456789", n) }
	wrong := func(s string) string { return s[:len(s)-1] + string(rune('0'+(s[len(s)-1]-'0'+1)%10)) }
	card, amex := checkDigit("4"+digits(14)), checkDigit("37"+digits(12))
	iban, short := checkNumbers("DE", digits(18)), checkNumbers("NO", digits(11))
	for name, tt := range map[string]struct{ text, want string }{
		"a card":                          {"card " + card + ".", "card [redacted: payment-card]."},
		"a card in groups":                {"card " + grouped(card), "card [redacted: payment-card]"},
		"a card with hyphens":             {strings.ReplaceAll(grouped(card), " ", "-"), "[redacted: payment-card]"},
		"a card in groups of its own":     {amex[:4] + " " + amex[4:10] + " " + amex[10:], "[redacted: payment-card]"},
		"a card with a wrong digit":       {wrong(card), wrong(card)},
		"a card of no network":            {checkDigit("9" + digits(14)), ""},
		"a part of a longer number":       {card + "123456", ""},
		"a part of a word":                {"x" + card, ""},
		"a fraction":                      {"0." + card, ""},
		"an account":                      {"to " + iban + ", please", "to [redacted: iban], please"},
		"an account in groups":            {grouped(iban), "[redacted: iban]"},
		"a short account":                 {short, "[redacted: iban]"},
		"an account with a wrong digit":   {wrong(iban), ""},
		"an account of another length":    {checkNumbers("DE", digits(17)), ""},
		"an account in no country":        {checkNumbers("ZZ", digits(18)), ""},
		"an account in a word":            {"A" + iban, ""},
		"an account at the text's end":    {iban[:len(iban)-1], ""},
		"two numbers, a line for each":    {card + "\n" + iban, "[redacted: payment-card]\n[redacted: iban]"},
		"a number in the middle of words": {"pay " + grouped(card) + " now", "pay [redacted: payment-card] now"},
	} {
		if tt.want == "" {
			tt.want = tt.text
		}
		if clean, found := s.Redact(tt.text); clean != tt.want {
			t.Errorf("%s: %q became %q, %v", name, tt.text, clean, found)
		}
		if clean, _ := plain.Redact(tt.text); clean != tt.text {
			t.Errorf("%s: %q is redacted although nobody asked for it", name, tt.text)
		}
	}
}
