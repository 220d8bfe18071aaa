package sanitize_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/wasmgate/wasmgate/sanitize"
)

// corpus reads a JSON file of the corpora that WASMGATE_CORPUS names.
func corpus(t *testing.T, name string, v any) {
	t.Helper()
	dir := os.Getenv("WASMGATE_CORPUS")
	if dir == "" {
		t.Skip("WASMGATE_CORPUS is not set: it names the folder of the test corpora")
	}
	b, err := os.ReadFile(filepath.Join(dir, "corpora", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

func TestPayloadsOfTheCorpusAreNeutralised(t *testing.T) {
	var payloads []struct{ Category, Text string }
	corpus(t, "unicode/payloads.json", &payloads)
	for i, p := range payloads {
		clean, found := new(t, sanitize.Text).Sanitize(p.Text)
		if !slices.ContainsFunc(found, func(f sanitize.Finding) bool { return f.Removed }) || clean == p.Text {
			t.Errorf("payload %d (%s) passed: %+q", i, p.Category, p.Text)
		}
		for _, r := range clean {
			if r < 0x20 && r != '\n' && r != '\t' || unicode.In(r, unicode.Cf) && r != 0x200d {
				t.Errorf("payload %d (%s): %U is left", i, p.Category, r)
			}
		}
	}
	t.Logf("%d payloads neutralised", len(payloads))
}

func TestBenignTextOfTheCorpusLives(t *testing.T) {
	var benign []string
	corpus(t, "unicode/benign.json", &benign)
	for i, s := range benign {
		if clean, found := new(t, sanitize.Text).Sanitize(s); clean != s || len(found) > 0 {
			t.Errorf("benign %d: %+q became %+q, %v", i, s, clean, found)
		}
	}
	t.Logf("%d controls, byte for byte", len(benign))
}

func TestMarkupOfTheCorpusIsMadeInert(t *testing.T) {
	var cases []struct{ Title, Payload string }
	corpus(t, "xss/dompurify-expect.json", &cases)
	for _, profile := range []sanitize.Profile{sanitize.Text, sanitize.HTML, sanitize.Strict} {
		changed := 0
		for i, c := range cases {
			clean, _ := new(t, profile).Sanitize(c.Payload)
			if clean != c.Payload {
				changed++
			}
			if left := activeContent(t, clean); left != "" {
				t.Errorf("%s: case %d (%s): %s is left\n in: %.300q\nout: %.300q", profile, i, c.Title, left, c.Payload, clean)
			}
		}
		t.Logf("profile %s: %d cases, %d changed, none active", profile, len(cases), changed)
	}
}

// activeContent names what is active in a text that is put into a page.
func activeContent(t *testing.T, s string) string {
	t.Helper()
	body := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	nodes, err := html.ParseFragment(strings.NewReader(s), body)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range append(nodes, doc) {
		if left := activeNode(n); left != "" {
			return left
		}
	}
	return ""
}

func activeNode(n *html.Node) string {
	if n.Type == html.ElementNode {
		has := make(map[string]bool)
		for _, a := range n.Attr {
			has[strings.ToLower(a.Key)] = true
		}
		switch n.Data {
		case "script", "style", "iframe", "frameset":
			return "element " + n.Data
		case "object", "embed", "applet", "frame":
			if has["data"] || has["src"] || has["code"] {
				return "element " + n.Data
			}
		case "base":
			if has["href"] || has["target"] {
				return "element base"
			}
		case "meta":
			for _, a := range n.Attr {
				if strings.EqualFold(a.Key, "http-equiv") && strings.EqualFold(a.Val, "refresh") {
					return "element meta"
				}
			}
		}
		for _, a := range n.Attr {
			v := strings.ToLower(strings.Map(func(r rune) rune {
				if r <= ' ' {
					return -1
				}
				return r
			}, a.Val))
			if key := strings.ToLower(a.Key); strings.HasPrefix(key, "on") && len(key) > 3 && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz") == "" && a.Val != "" && !strings.Contains("once only online onto ones", key) {
				return "handler " + a.Key
			}
			if a.Key == "src" && (strings.HasPrefix(v, "//") || strings.HasPrefix(v, "http:") || strings.HasPrefix(v, "https:")) {
				return "fetches " + a.Val
			}
			words := a.Key == "title" || a.Key == "alt" // which are shown, and never followed
			if !words && (strings.HasPrefix(v, "javascript:") || strings.HasPrefix(v, "vbscript:") || strings.HasPrefix(v, "data:text/html")) {
				return "URL in " + a.Key
			}
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if left := activeNode(c); left != "" {
			return left
		}
	}
	return ""
}

// Definitions of real servers keep every letter: what is changed in them is a
// space that takes a link its form.
func TestBenignDefinitionsOfTheCorpusKeepTheirMeaning(t *testing.T) {
	s := new(t, sanitize.Text)
	all, changed := 0, 0
	for _, line := range corpusLines(t, "tools/benign.jsonl") {
		all++
		same := true
		eachString(line, func(text string) {
			clean, found := s.Sanitize(text)
			if clean == text {
				return
			}
			same = false
			if strings.ReplaceAll(clean, " ", "") != strings.ReplaceAll(text, " ", "") {
				t.Errorf("%v\n in: %.300q\nout: %.300q", found, text, clean)
			}
		})
		if !same {
			changed++
		}
	}
	if all < 700 {
		t.Errorf("only %d definitions", all)
	}
	t.Logf("%d definitions: %d with a link made inert, 0 altered in meaning", all, changed)
}

func corpusLines(t *testing.T, name string) (all []any) {
	t.Helper()
	dir := os.Getenv("WASMGATE_CORPUS")
	if dir == "" {
		t.Skip("WASMGATE_CORPUS is not set: it names the folder of the test corpora")
	}
	b, err := os.ReadFile(filepath.Join(dir, "corpora", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func eachString(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, e := range v {
			eachString(e, f)
		}
	case map[string]any:
		for k, e := range v {
			f(k)
			eachString(e, f)
		}
	}
}
