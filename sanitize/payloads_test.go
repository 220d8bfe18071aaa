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
// at each of several places. That the judges find each of them before keeps the list from rotting;
// what hides by its style only the browser sees.
func TestPayloadsAreInert(t *testing.T) {
	looks := map[string]func([]string) []string{"parsers": judges(t, "active.mjs")}
	if _, err := exec.LookPath("chromium"); err == nil {
		looks["browser"] = judges(t, "browser.mjs")
	}
	forms, texts := payloads(t)
	before := make([]string, len(texts))
	for _, judge := range looks {
		for i, found := range judge(texts) {
			before[i] += found
		}
	}
	for i, form := range forms {
		if before[i] == "" && (looks["browser"] != nil || !strings.HasPrefix(form, "hides ")) {
			t.Errorf("%s: no judge finds %q active to begin with", form, texts[i])
		}
	}
	for by, judge := range looks {
		for _, p := range judged {
			t.Run(by+"/"+string(p), func(t *testing.T) {
				judgeAll(t, judge, p, texts)
				judgePieces(t, judge, p, texts, evenly)
			})
		}
	}
	t.Logf("%d payloads", len(texts))
}

// evenly cuts a text at places that are equally far from each other.
func evenly(text string) (cuts []int) {
	const places = 7
	for i := 1; i < places; i++ {
		cuts = append(cuts, i*len(text)/places)
	}
	return cuts
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
