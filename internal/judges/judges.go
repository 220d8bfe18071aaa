// Package judges asks programs of another make than the sanitizer what in texts is active,
// for tests: parsers of HTML and Markdown, or a browser. They run in Node, from .ci/node.
package judges

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A Judge says of each text what in it is active, "" if nothing is.
type Judge func(texts []string) []string

// Parsers are parse5 for HTML, and marked, markdown-it and commonmark.js for Markdown. A test
// without them is skipped.
func Parsers(t *testing.T) Judge { return in(t, "active.mjs") }

// Browser is a headless Chromium from which no request gets out.
func Browser(t *testing.T) Judge {
	if !HasBrowser() {
		t.Skip("chromium is not installed")
	}
	return in(t, "browser.mjs")
}

// HasBrowser reports whether there is a browser.
func HasBrowser() bool {
	_, err := exec.LookPath("chromium")
	return err == nil
}

func in(t *testing.T, name string) Judge {
	t.Helper()
	script := filepath.Join(root(t), ".ci", "node", name)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(script), "node_modules", "commonmark")); err != nil {
		t.Skip("the packages are not installed: npm ci --prefix .ci/node")
	}
	return func(texts []string) []string {
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
}

// A Payload is an active text of some form.
type Payload struct{ Form, Text string }

// Payloads returns those of sanitize/testdata/payloads.txt: a line has a form, and a text in
// Go's notation, in which LONG is a label of 1,200 bytes.
func Payloads(t *testing.T) (all []Payload) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), "sanitize", "testdata", "payloads.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		form, quoted, _ := strings.Cut(strings.TrimSpace(line), ": ")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		all = append(all, Payload{form, strings.ReplaceAll(text, "LONG", strings.Repeat("long ", 240))})
	}
	return all
}

// root is the folder of the module in which a test runs.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "conformance")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test does not run in the module's folder")
		}
	}
}
