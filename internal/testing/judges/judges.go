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

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// A Judge says of each text what in it is active, "" if nothing is.
type Judge func(texts []string) []string

// Parsers are parse5 for HTML, and marked, markdown-it and commonmark.js for Markdown. A test
// without them is skipped.
func Parsers(t *testing.T) Judge { return in(t, "active.mjs") }

// Comments says which of marked, markdown-it and commonmark.js leave a comment in the page. A test
// without them is skipped.
func Comments(t *testing.T) Judge { return in(t, "comments.mjs") }

// Browser is a headless Chromium from which no request gets out.
func Browser(t *testing.T) Judge {
	toolchain.Need(t, "chromium")
	return in(t, "browser.mjs")
}

// Drawings is a headless Chromium that shows texts as drawings in SVG: as documents, and in a page.
func Drawings(t *testing.T) Judge {
	toolchain.Need(t, "chromium")
	return in(t, "drawings.mjs")
}

// Pixels has a headless Chromium draw pairs of pages, and returns which look alike.
func Pixels(t *testing.T) func(pairs [][2]string) []string {
	toolchain.Need(t, "chromium")
	return asked[[2]string](t, "pixels.mjs")
}

func in(t *testing.T, name string) Judge { return asked[string](t, name) }

func asked[T any](t *testing.T, name string) func([]T) []string {
	t.Helper()
	toolchain.Need(t, "node", toolchain.NodePackages)
	script := filepath.Join(toolchain.Root(), ".ci", "node", name)
	return func(texts []T) []string {
		in, err := json.Marshal(texts)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "node", script)
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
	b, err := os.ReadFile(filepath.Join(toolchain.Root(), "sanitize", "testdata", "payloads.txt"))
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
