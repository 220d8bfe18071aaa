package secrets_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/secrets"
)

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func random(r *rand.Rand, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// pat makes what looks like a personal access token of GitHub.
func pat(r *rand.Rand) string { return "gh" + "p_" + random(r, letters, 36) }

// password makes texts without words, because gitleaks takes secrets with words for names. Each
// character occurs three times, because gitleaks takes those with less variety for placeholders.
func password(r *rand.Rand) string {
	chars := []byte(strings.Repeat("0123456789QXZJKVW", 3))
	r.Shuffle(len(chars), func(i, j int) { chars[i], chars[j] = chars[j], chars[i] })
	return string(chars)
}

func rulesOf(found []secrets.Finding) []string {
	var ids []string
	for _, f := range found {
		ids = append(ids, f.Rule)
	}
	return ids
}

// own makes secrets of a rule until its expression matches one on a line of its
// own, for boundaries are not made, and the rule does not call it a placeholder. It
// puts a keyword before a secret without, and ends the line if a quote cannot.
func own(r *rand.Rand, src source) string {
	re := regexp.MustCompile(src.Regex)
	for {
		x := secret(r, src.tree)
		if !slices.ContainsFunc(src.Keywords, func(k string) bool { return strings.Contains(strings.ToLower(x), k) }) {
			x = src.Keywords[0] + " " + x
		}
		groups := re.FindStringSubmatch(x + "\n")
		if groups == nil || placeholder(src, x, groups[len(groups)-1]) {
			continue
		}
		if !re.MatchString(x + `"`) {
			x += "\n"
		}
		return x
	}
}

// placeholder reports whether a rule allows a match, or a secret with a word in it.
func placeholder(src source, match, secret string) bool {
	for _, l := range src.Allowlists {
		if slices.ContainsFunc(l.Regexes, func(e string) bool { return regexp.MustCompile(e).MatchString(match) }) ||
			slices.ContainsFunc(l.StopWords, func(w string) bool { return strings.Contains(strings.ToLower(secret), w) }) {
			return true
		}
	}
	return false
}

func TestEveryRuleFindsItsOwnKind(t *testing.T) {
	s, r := newScanner(t, secrets.Options{}), seed.Rand(t)
	const few, many = 20, 4000 // many for a rule that misses one of few
	found, total, worst := 0, 0, 1.0
	for _, src := range sources(t) {
		path := ""
		for _, p := range paths {
			if src.Path != "" && strings.Contains(src.Path, p[strings.LastIndexByte(p, '.')+1:]) || strings.Contains(src.Path, "ya?ml") && p == "deploy.yaml" {
				path = p
			}
		}
		hits, tries := 0, 0
		for n := 0; n < few || n < many && hits*20 < tries*19; n++ {
			x := own(r, src)
			for _, place := range []string{"prose", "json", "code"} {
				tries++
				if slices.ContainsFunc(s.Raws(path, fmt.Sprintf(places[place], x)), func(raw secrets.Raw) bool { return raw.Rule == src.ID }) {
					hits++
				}
			}
		}
		share := float64(hits) / float64(tries)
		if share < 0.95 {
			t.Errorf("rule %s finds %d of %d", src.ID, hits, tries)
		}
		found, total, worst = found+hits, total+tries, min(worst, share)
	}
	t.Logf("%d of %d secrets found (%.2f %%), %.1f %% by the worst rule", found, total, 100*float64(found)/float64(total), 100*worst)
}

func TestRedactedTextHoldsNothingToRedact(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true, Checked: true}), seed.Rand(t)
	redacted := 0
	for _, src := range sources(t) {
		for range secretsOfEach {
			x := secret(r, src.tree)
			for place, format := range places {
				text := fmt.Sprintf(format, x)
				clean, found := s.Redact(text)
				if again, more := s.Redact(clean); again != clean || len(more) > 0 {
					t.Fatalf("%s in %s: %q became %q, and that %q with %v", src.ID, place, text, clean, again, more)
				}
				if (clean != text) != (len(found) > 0) {
					t.Fatalf("%s in %s: %q became %q with findings %v", src.ID, place, text, clean, found)
				}
				for i, f := range found {
					if f.Start < 0 || f.Start >= f.End || f.End > len(text) || i > 0 && f.Start < found[i-1].End {
						t.Fatalf("%s in %s: places of findings %v in %q", src.ID, place, found, text)
					}
				}
				redacted += len(found)
			}
		}
	}
	if redacted < 250*secretsOfEach {
		t.Errorf("only %d findings", redacted)
	}
}

func TestRedact(t *testing.T) {
	s, r := newScanner(t, secrets.Options{}), seed.Rand(t)
	a, b := pat(r), pat(r)
	word := password(r)
	key := "-----BEGIN RSA PRIVATE" + " KEY-----\n" + random(r, letters, 64) + "\n" + random(r, letters, 64) + "\n-----END RSA PRIVATE" + " KEY-----"
	for name, tt := range map[string]struct{ text, want string }{
		"text without secrets stays":                           {"nothing to see", "nothing to see"},
		"a token leaves its kind":                              {"use " + a + ".", "use [redacted: github-pat]."},
		"tokens that stand apart are apart":                    {a + " " + b, "[redacted: github-pat] [redacted: github-pat]"},
		"tokens that touch are one":                            {a + b, "[redacted: github-pat]"},
		"a secret behind a word goes, the word stays":          {`{"password": "` + word + `"}`, `{"password": "[redacted: generic-api-key]"}`},
		"a key goes with all its lines":                        {"first\n" + key + "\nlast", "first\n[redacted: private-key]\nlast"},
		"the certain kind names what two rules find":           {"token = " + a + "\n", "token = [redacted: github-pat]\n"},
		"a remark that allows it in gitleaks has no meaning":   {"use " + a + " # gitleaks:" + "allow", "use [redacted: github-pat] # gitleaks:" + "allow"},
		"a secret behind characters that are not UTF-8 is one": {"\xff\xfe " + a + " \x80", "\xff\xfe [redacted: github-pat] \x80"},
	} {
		clean, found := s.Redact(tt.text)
		if clean != tt.want {
			t.Errorf("%s: got %q, want %q", name, clean, tt.want)
		}
		for _, f := range found {
			if f.Kind == "" || len(f.Fingerprint) != 32 || !f.Redacted {
				t.Errorf("%s: finding %+v", name, f)
			}
		}
	}
}

// The groups of these expressions take a small part of what is secret.
func TestSecretsAroundAGroupGoWhole(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Skip: []string{secrets.RuleGeneric}}), seed.Rand(t)
	tested := 0
	for _, src := range sources(t) {
		if src.ID == "microsoft-teams-webhook" || src.ID == "jwt-base64" {
			x := strings.TrimSpace(own(r, src))
			if clean, _ := s.Redact("<" + x + ">"); clean != "<[redacted: "+src.ID+"]>" {
				t.Errorf("%q became %q", x, clean)
			}
			tested++
		}
	}
	if tested != 2 {
		t.Errorf("%d rules tested", tested)
	}
}

// The last argument of such a command hides the ones before it: the rule takes as
// much as it can.
func TestWhatCannotBeToldApartIsWithheld(t *testing.T) {
	s, r := newScanner(t, secrets.Options{}), seed.Rand(t)
	for n, whole := range map[int]bool{2: false, 12: true} {
		var b strings.Builder
		b.WriteString("curl")
		for range n {
			b.WriteString(` -u "` + random(r, letters, 12) + ":Q" + random(r, letters, 12) + `"`)
		}
		clean, found := s.Redact(b.String() + " ")
		if strings.Contains(clean, "-u") == whole {
			t.Errorf("%d secrets: %q", n, clean)
		}
		if again, _ := s.Redact(clean); again != clean {
			t.Errorf("%d secrets: %q became %q", n, clean, again)
		}
		if last := found[len(found)-1]; last.End > b.Len()+1 || last.End < b.Len()-1 {
			t.Errorf("%d secrets: the last is %+v in %d bytes", n, last, b.Len())
		}
	}
}

func TestEncodedSecrets(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true}), seed.Rand(t)
	plain := `{"user": "someone", "token": "` + pat(r) + `", "note": "é?>~ and a few words more"}`
	std := base64.StdEncoding.EncodeToString([]byte(plain))
	ascii := strings.ReplaceAll(plain, "é", "e")
	spaced := func(text, format string) string {
		var b strings.Builder
		for _, c := range []byte(text) {
			fmt.Fprintf(&b, format, c)
		}
		return b.String()
	}
	for name, encoded := range map[string]string{
		"base64":                      std,
		"base64 for URLs":             base64.URLEncoding.EncodeToString([]byte(plain)),
		"base64 without padding":      base64.RawStdEncoding.EncodeToString([]byte(plain)),
		"base64 in lines":             std[:60] + "\n" + std[60:120] + "\r\n" + std[120:],
		"base64 with bytes behind":    std[:len(std)-len(std)%4-4] + "gICA",
		"hex":                         hex.EncodeToString([]byte(plain)),
		"hex in capitals":             strings.ToUpper(hex.EncodeToString([]byte(plain))),
		"bytes in hex":                strings.TrimSuffix(spaced(plain, "%02x:"), ":"),
		"bytes in hex, with spaces":   strings.TrimSuffix(spaced(plain, "%02X "), " "),
		"bytes in hex, with dashes":   strings.TrimSuffix(spaced(plain, "%02X-"), "-"),
		"an array of bytes":           strings.TrimSuffix(spaced(plain, "0x%02x, "), ", "),
		"UTF-16 in base64":            base64.StdEncoding.EncodeToString([]byte(spaced(ascii, "%c\x00"))),
		"UTF-16 with its mark":        base64.StdEncoding.EncodeToString([]byte("\xff\xfe" + spaced(ascii, "%c\x00"))),
		"UTF-16, the high byte first": base64.StdEncoding.EncodeToString([]byte("\xfe\xff" + spaced(ascii, "\x00%c"))),
		"UTF-16 in hex":               hex.EncodeToString([]byte(spaced(ascii, "\x00%c"))),
		"percent signs":               spaced(plain, "%%%02x"),
		"percent signs as needed":     url.QueryEscape(plain),
		"base64 in base64":            base64.StdEncoding.EncodeToString([]byte("data:" + std)),
		"hex in percent signs":        "%7B" + hex.EncodeToString([]byte(plain)) + "%7D",
		"base64 with percent signs":   url.QueryEscape(std),
	} {
		text := "before (" + encoded + ") after"
		clean, found := s.Redact(text)
		if clean != "before ([redacted: github-pat]) after" || len(found) != 1 || text[found[0].Start:found[0].End] != encoded {
			t.Errorf("%s: got %q, %+v", name, clean, found)
		}
	}
	if found := newScanner(t, secrets.Options{}).Find(std); slices.Contains(rulesOf(found), "github-pat") {
		t.Error("base64 is decoded although nobody asked for it")
	}
	deep := std
	for range 2 {
		deep = base64.StdEncoding.EncodeToString([]byte(deep))
	}
	if found := s.Find(deep); len(found) > 0 {
		t.Errorf("three encodings were taken off: %v", found)
	}
}

func TestFingerprints(t *testing.T) {
	r := seed.Rand(t)
	key := []byte(random(r, letters, 32))
	one, other := newScanner(t, secrets.Options{Key: key, Decode: true}), newScanner(t, secrets.Options{})
	a, b := pat(r), pat(r)
	print := func(s *secrets.Scanner, text string) string {
		found := s.Find(text)
		if len(found) != 1 {
			t.Fatalf("%d findings in %q", len(found), text)
		}
		return found[0].Fingerprint
	}
	if print(one, a) != print(one, "somewhere else: "+a) {
		t.Error("one secret has two fingerprints")
	}
	if print(one, a) != print(one, base64.StdEncoding.EncodeToString([]byte("is: "+a))) {
		t.Error("a secret has another fingerprint when it is encoded")
	}
	if print(one, a) == print(one, b) {
		t.Error("two secrets have one fingerprint")
	}
	if print(one, a) == print(other, a) {
		t.Error("the fingerprint does not depend on the key")
	}
	if again := newScanner(t, secrets.Options{Key: key}); print(one, a) != print(again, a) {
		t.Error("one key gives two fingerprints")
	}
}

func TestAllow(t *testing.T) {
	r := seed.Rand(t)
	a, key := pat(r), []byte("a key for this test")
	fingerprint := newScanner(t, secrets.Options{Key: key}).Find(a)[0].Fingerprint
	for name, tt := range map[string]struct {
		allow secrets.Allow
		path  string
		found bool
	}{
		"its rule":                         {secrets.Allow{Rule: "github-pat"}, "", false},
		"another rule":                     {secrets.Allow{Rule: "gitlab-pat"}, "", true},
		"its fingerprint":                  {secrets.Allow{Fingerprint: fingerprint}, "", false},
		"another fingerprint":              {secrets.Allow{Fingerprint: strings.Repeat("0", 32)}, "", true},
		"an expression":                    {secrets.Allow{Regexp: "^" + a[:8]}, "", false},
		"an expression that does not fit":  {secrets.Allow{Regexp: "^x"}, "", true},
		"a path":                           {secrets.Allow{Path: `^docs/`}, "docs/a.md", false},
		"another path":                     {secrets.Allow{Path: `^docs/`}, "src/a.md", true},
		"a path, and none is known":        {secrets.Allow{Path: `^docs/`}, "", true},
		"its rule, but in another path":    {secrets.Allow{Rule: "github-pat", Path: `^docs/`}, "src", true},
		"its rule and path, not the words": {secrets.Allow{Rule: "github-pat", Path: `^docs/`, Regexp: "^x"}, "docs/a", true},
	} {
		s := newScanner(t, secrets.Options{Key: key, Allow: []secrets.Allow{tt.allow}})
		if clean, found := s.RedactIn(tt.path, a); len(found) > 0 != tt.found || (clean != a) != tt.found {
			t.Errorf("%s: got %v", name, found)
		}
	}
}

func TestReportedFindingsStay(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Report: []string{secrets.RuleGeneric}, Decode: true}), seed.Rand(t)
	a, word := pat(r), password(r)
	text := a + "\npassword: " + word + "\n"
	clean, found := s.Redact(text)
	if want := "[redacted: github-pat]\npassword: " + word + "\n"; clean != want {
		t.Errorf("got %q, want %q", clean, want)
	}
	if len(found) != 2 || !found[0].Redacted || found[1].Redacted || text[found[1].Start:found[1].End] != word {
		t.Errorf("findings %+v", found)
	}
	if clean, found := s.Redact("password: " + a); !strings.HasSuffix(clean, "[redacted: github-pat]") || len(found) != 1 {
		t.Errorf("what two rules find became %q, %+v", clean, found)
	}
	if clean, _ := s.Redact(base64.StdEncoding.EncodeToString([]byte(text))); clean != "[redacted: github-pat]" {
		t.Errorf("both in base64 became %q", clean)
	}
}

func TestSkippedRulesFindNothing(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Skip: []string{"github-pat", secrets.RuleGeneric}}), seed.Rand(t)
	if found := s.Find("token: " + pat(r)); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for name, o := range map[string]secrets.Options{
		"a rule to skip that does not exist":   {Skip: []string{"github-pad"}},
		"a rule to report that does not exist": {Report: []string{""}},
		"an empty allowance":                   {Allow: []secrets.Allow{{}}},
		"a path that does not compile":         {Allow: []secrets.Allow{{Path: "("}}},
		"a regexp that does not compile":       {Allow: []secrets.Allow{{Regexp: "["}}},
	} {
		if _, err := secrets.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Names of files can come from the sender of the text: they take no rule of a certain kind away.
func TestPathsOfFiles(t *testing.T) {
	s, r := newScanner(t, secrets.Options{}), seed.Rand(t)
	sum := "golang.org/x/oauth2 v0.35.0 h1:" + password(r) + "="
	if len(s.Find(sum)) == 0 {
		t.Error("a line of go.sum is not found without its path, and nothing is tested")
	}
	if found := s.FindIn("src/go.sum", sum); len(found) > 0 {
		t.Errorf("in go.sum: %v", found)
	}
	if found := s.FindIn("picture.png", pat(r)); len(found) != 1 {
		t.Errorf("in a file that claims to be a picture: %v", found)
	}
	manifest := "kind: Secret\ndata:\n  value: " + random(r, "abcdefghij", 20) + "\n"
	if found := s.FindIn("a.yaml", manifest); !slices.Contains(rulesOf(found), "kubernetes-secret-yaml") {
		t.Errorf("in a manifest: %v", found)
	}
}

// A document can be one line; words that are far away in it allow nothing.
func TestWordsFarAwayAllowNothing(t *testing.T) {
	s, r := newScanner(t, secrets.Options{}), seed.Rand(t)
	word, text := "RUN --mount=type=secret,id=x ", "token='"+password(r)+"' "
	if found := s.Find(word + text); len(found) > 0 {
		t.Errorf("behind the word: %v, and nothing is tested", found)
	}
	if found := s.Find(word + strings.Repeat(". ", 400) + text); len(found) != 1 {
		t.Errorf("far behind the word: %v", found)
	}
}

// Texts that are made to be slow take time by their length, which is seconds, and not by its
// square, which is days: then the test does not end.
func TestHostileTextsEnd(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true, Checked: true}), seed.Rand(t)
	size := 512 << 10
	if raced || testing.Short() {
		size = 64 << 10
	}
	for _, part := range []string{
		"key=", "key: ", "keykey", "-----BEGIN PRIVATE" + " KEY----", "curl -u ", "curl ", "a key='" + random(r, letters, 100),
		"https://a.webhook.office.com/webhookb2/", "%41", "QUFBQUFBQUFBQUFBQUFBQUFB", "41414141", "4242 ", "GB00", "ghp_", "eyJ", "jira=" + random(r, letters, 23), "\xff",
	} {
		text := "(((" + strings.Repeat(part, size/len(part)) + ")))"
		clean, _ := s.Redact(text)
		t.Logf("%.30q: %d bytes", part, len(clean))
	}
}

func TestTextMadeOfSecretsIsWithheldWhole(t *testing.T) {
	s, r := newScanner(t, secrets.Options{}), seed.Rand(t)
	var b strings.Builder
	for range 6_000 {
		b.WriteString("token ghp_" + random(r, letters, 36) + "\n")
	}
	if clean, found := s.Redact(b.String()); len(found) != 1 || strings.Contains(clean, "ghp_") || len(clean) > 100 {
		t.Errorf("%d findings, %d bytes are left: %.100q", len(found), len(clean), clean)
	}
}

// A rule that only reports and has more matches than are looked at hides no secret of
// another rule.
func TestManyReportedMatchesHideNothing(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Report: []string{secrets.RuleGeneric}}), seed.Rand(t)
	var b strings.Builder
	for range 6_000 {
		b.WriteString("key: " + random(r, letters, 20) + "\n")
	}
	for _, token := range []string{pat(r), "gsk" + "_" + random(r, letters, 52)} {
		if clean, _ := s.Redact(b.String() + token + "\n"); !strings.HasPrefix(clean, "key: ") || strings.Contains(clean, token) {
			t.Errorf("%.4s: %d bytes are left, with the token: %v", token, len(clean), strings.Contains(clean, token))
		}
	}
}

func TestScannerIsForSeveralGoroutines(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true, Checked: true}), seed.Rand(t)
	var texts []string
	for _, src := range sources(t) {
		texts = append(texts, secret(r, src.tree))
	}
	var wg sync.WaitGroup
	results := make([]int, 4)
	for i := range results {
		wg.Go(func() {
			for _, text := range texts {
				results[i] += len(s.Find(text))
			}
		})
	}
	wg.Wait()
	for _, n := range results {
		if n != results[0] || n == 0 {
			t.Fatalf("findings differ: %v", results)
		}
	}
}

func TestTextWithoutSecretsCostsNoMemory(t *testing.T) {
	s := newScanner(t, secrets.Options{Decode: true, Checked: true})
	text := benchTexts["prose"](t)
	s.Find(text)
	least := 1.0 // the race detector takes things out of pools
	for range 20 {
		least = min(least, testing.AllocsPerRun(1, func() { s.Redact(text) }))
	}
	if least >= 1 {
		t.Errorf("%v allocations", least)
	}
}

func TestAllExpressionsCompile(t *testing.T) {
	newScanner(t, secrets.Options{}).CompileAll()
}
