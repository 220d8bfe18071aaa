package sanitize_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/sanitize"
)

// The judges are of another make than the sanitizer: parse5 for HTML, marked for
// Markdown. That they find something in the texts as they were shows that they
// look.
func TestOtherParsersFindNothingActive(t *testing.T) {
	script, err := filepath.Abs("../.ci/node/active.mjs")
	if err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(script), "node_modules", "commonmark")); err != nil {
		t.Skip("the packages are not installed: npm ci --prefix .ci/node")
	}
	judge := func(texts []string) []string {
		in, err := json.Marshal(texts)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), node, script)
		cmd.Stdin = bytes.NewReader(in)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		if err := json.Unmarshal(out, &found); err != nil || len(found) != len(texts) {
			t.Fatalf("%d verdicts on %d texts: %v", len(found), len(texts), err)
		}
		return found
	}

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
	before := 0
	for _, found := range judge(texts) {
		if found != "" {
			before++
		}
	}
	if before < len(texts)/4 {
		t.Fatalf("only %d of %d texts are active to begin with: the judges do not look", before, len(texts))
	}
	for _, p := range []sanitize.Profile{sanitize.Text, sanitize.HTML, sanitize.Strict} {
		clean := make([]string, len(texts))
		for i, text := range texts {
			clean[i], _ = new(t, p).Sanitize(text)
		}
		for i, found := range judge(clean) {
			if found != "" {
				t.Errorf("%s: text %d: %s is left\n in: %.300q\nout: %.300q", p, i, found, texts[i], clean[i])
			}
		}
	}
	t.Logf("%d texts, %d of them active before, none after", len(texts), before)
}
