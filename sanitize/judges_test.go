package sanitize_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	goldhtml "github.com/yuin/goldmark/renderer/html"

	"github.com/wasmgate/wasmgate/internal/testing/judges"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sanitize"
)

// judged are the profiles after which nothing may be active.
var judged = []sanitize.Profile{sanitize.Text, sanitize.HTML, sanitize.Strict}

// The judges are of another make than the sanitizer: parse5 for HTML, marked,
// markdown-it and commonmark.js for Markdown. That they find something in the texts
// as they were shows that they look.
func TestOtherParsersFindNothingActive(t *testing.T) {
	t.Parallel()
	judge := judges.Parsers(t)
	var attacks []struct{ Title, Payload string }
	corpus(t, "xss/dompurify-expect.json", &attacks)
	var payloads []struct{ Category, Text string }
	corpus(t, "unicode/payloads.json", &payloads)
	var texts []string
	for _, a := range attacks {
		texts = append(texts, a.Payload)
	}
	for _, p := range payloads {
		texts = append(texts, p.Text)
	}
	before := countActive(judge(texts))
	if before < len(texts)/4 {
		t.Fatalf("only %d of %d texts are active to begin with: the judges do not look", before, len(texts))
	}
	judgeAll(t, judge, texts, judged...)
	t.Logf("%d texts, %d of them active before", len(texts), before)
}

// TestGeneratedTextsAreInert generates texts; WASMGATE_TEXTS says how many, and
// WASMGATE_SEED from which seed. A tenth of them is cut in pieces as well.
func TestGeneratedTextsAreInert(t *testing.T) {
	t.Parallel()
	judge := judges.Parsers(t)
	n, seed := number(t, "WASMGATE_TEXTS", 2000), seed.Of(t)
	if testing.Short() {
		n = min(n, 500)
	}
	if unraced.AtWork() {
		n = min(n, 100)
	}
	s := newSource(t, seed)
	const batch = 20000
	before := 0
	for done := 0; done < n; done += batch {
		texts := make([]string, min(batch, n-done))
		for i := range texts {
			texts[i] = s.text()
		}
		if done == 0 {
			before = countActive(judge(texts))
		}
		judgeAll(t, judge, texts, sanitize.Text)
		few := texts[:len(texts)/10+1]
		judgeAll(t, judge, few, sanitize.HTML, sanitize.Strict)
		judgePieces(t, judge, sanitize.Text, few, func(text string) []int { return []int{s.IntN(len(text) + 1)} })
		if t.Failed() {
			t.Fatalf("after %d texts of seed %d", done+len(texts), seed)
		}
	}
	if before < min(n, batch)/8 {
		t.Errorf("only %d of the first %d texts are active to begin with", before, min(n, batch))
	}
	t.Logf("%d texts of seed %d, %d of the first %d active before, none after", n, seed, before, min(n, batch))
}

// judgeAll has what profiles make of texts judged.
func judgeAll(t *testing.T, judge judges.Judge, texts []string, profiles ...sanitize.Profile) {
	t.Helper()
	var clean []string
	for _, p := range profiles {
		for _, text := range texts {
			one, _ := new(t, p).Sanitize(text)
			clean = append(clean, one)
		}
	}
	for i, found := range judge(clean) {
		if n := len(texts); found != "" {
			t.Errorf("%s: text %d: %s is left\n in: %+q\nout: %+q", profiles[i/n], i%n, found, texts[i%n], clean[i])
		}
	}
}

// judgePieces cuts texts in two, at the places that cuts gives, as contents of one result and
// as a document of JSON.
func judgePieces(t *testing.T, judge judges.Judge, p sanitize.Profile, texts []string, cuts func(text string) []int) {
	t.Helper()
	s := new(t, p)
	var whole, shown []string
	for _, text := range texts {
		for _, cut := range cuts(text) {
			pieces := []string{strings.ToValidUTF8(text[:cut], ""), strings.ToValidUTF8(text[cut:], "")}
			open := false
			for i := range pieces {
				pieces[i], _ = s.Sanitize(pieces[i])
				open = open || s.Open(pieces[i])
			}
			if open {
				pieces, _ = s.Together(pieces)
			}
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			if err := e.Encode(pieces); err != nil {
				t.Fatal(err)
			}
			raw, _ := s.Inert(b.String())
			whole = append(whole, text)
			shown = append(shown, strings.Join(pieces, ""), strings.Join(pieces, "\n"), raw)
		}
	}
	for i, found := range judge(shown) {
		if found != "" {
			t.Errorf("%s: pieces %d: %s is left\n in: %q\nout: %q", p, i, found, whole[i/3], shown[i])
		}
	}
}

func countActive(verdicts []string) (n int) {
	for _, v := range verdicts {
		if v != "" {
			n++
		}
	}
	return n
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestBrowserFindsNothingActive shows generated texts to a headless Chromium, from
// which no request gets out; WASMGATE_BROWSER_TEXTS says how many.
func TestBrowserFindsNothingActive(t *testing.T) {
	t.Parallel()
	unraced.Long(t)
	judge := judges.Browser(t)
	n, seed := number(t, "WASMGATE_BROWSER_TEXTS", 1000), seed.Of(t)
	if testing.Short() {
		n = min(n, 200)
	}
	if before := judge([]string{"<img src=x onerror=alert(1)>", "<img src=//evil.example/a>", "<script>alert(1)</script>", "<i style='opacity:0'>x</i>", "<b>x</b>"}); countActive(before) != 4 {
		t.Fatalf("the browser does not look: %q", before)
	}
	s := newSource(t, seed)
	const batch = 10000
	for done := 0; done < n; done += batch {
		texts := make([]string, min(batch, n-done))
		for i := range texts {
			texts[i] = s.text()
		}
		judgeAll(t, judge, texts, sanitize.Text)
		if t.Failed() {
			t.Fatalf("after %d texts of seed %d", done+len(texts), seed)
		}
	}
	t.Logf("%d texts of seed %d, none active", n, seed)
}

// TestGoldmarkFindsNothingActive has a second opinion from goldmark and x/net/html,
// which need no Node.
func TestGoldmarkFindsNothingActive(t *testing.T) {
	n, seed := number(t, "WASMGATE_TEXTS", 20000), seed.Of(t)
	s := newSource(t, seed)
	if testing.Short() {
		n = min(n, 3000)
	}
	md := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote), goldmark.WithRendererOptions(goldhtml.WithUnsafe()))
	before := 0
	rendered := func(text string) string {
		var b bytes.Buffer
		if err := md.Convert([]byte(text), &b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for i := range n {
		text := s.text()
		if i < 1000 && activeContent(t, rendered(text)) != "" {
			before++
		}
		clean, _ := new(t, sanitize.Text).Sanitize(text)
		for by, page := range map[string]string{"HTML": clean, "Markdown": rendered(clean)} {
			if left := activeContent(t, page); left != "" {
				t.Fatalf("seed %d, text %d, as %s: %s is left\n in: %q\nout: %q", seed, i, by, left, text, clean)
			}
		}
	}
	if before < 100 {
		t.Errorf("only %d of 1000 texts are active to begin with", before)
	}
}
