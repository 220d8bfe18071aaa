package sanitize_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// The list has an active text of each form that was tried at the sanitizer, in Go's notation;
// LONG is a label of 1,200 bytes. None is active any more, whole or in two pieces, cut
// at several places. That some judge finds each active before keeps the list from rotting;
// what hides by its style the browser alone sees.
func TestPayloadsAreInert(t *testing.T) {
	type look struct {
		by     string
		judge  func([]string) []string
		pieces int // how many a text is divided in, to be cut between two of them
	}
	looks := []look{{"parsers", judges(t, "active.mjs"), 7}}
	if _, err := exec.LookPath("chromium"); err == nil && !testing.Short() {
		looks = append(looks, look{"browser", judges(t, "browser.mjs"), 4})
	}
	forms, texts := payloads(t)
	var hiding []string
	for i, found := range looks[0].judge(texts) {
		if strings.HasPrefix(forms[i], "hides ") {
			hiding = append(hiding, texts[i])
		} else if found == "" {
			t.Errorf("%s: no parser finds %q active to begin with", forms[i], texts[i])
		}
	}
	if len(looks) > 1 {
		for i, found := range looks[1].judge(hiding) {
			if found == "" {
				t.Errorf("the browser does not find %q hidden to begin with", hiding[i])
			}
		}
	}
	for _, l := range looks {
		cuts := func(text string) (at []int) {
			for i := 1; i < l.pieces; i++ {
				at = append(at, i*len(text)/l.pieces)
			}
			return at
		}
		for _, p := range judged {
			t.Run(l.by+"/"+string(p), func(t *testing.T) {
				judgeAll(t, l.judge, p, texts)
				judgePieces(t, l.judge, p, texts, cuts)
			})
		}
	}
	t.Logf("%d payloads", len(texts))
}

// payloads returns the texts of the list, and of which form each is.
func payloads(t *testing.T) (forms, texts []string) {
	t.Helper()
	b, err := os.ReadFile("testdata/payloads.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		form, quoted, _ := strings.Cut(strings.TrimSpace(line), ": ")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		forms, texts = append(forms, form), append(texts, strings.ReplaceAll(text, "LONG", strings.Repeat("long ", 240)))
	}
	return forms, texts
}
