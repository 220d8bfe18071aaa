package sanitize_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sanitize"
)

// readmeTags are the tags that make a text one of Markdown with HTML.
var readmeTags = regexp.MustCompile(`(?i)</?(a|b|br|center|code|dd|del|details|div|dl|dt|em|font|h[1-6]|hr|i|img|kbd|li|ol|p|picture|pre|source|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul)(\s[^<>]*)?/?>`)

// Markdown with HTML, as the packages here have it, stays: of those texts whose links are on the list, and that have no
// styles, scripts, handlers and words in comments, at most five in a hundred are changed.
func TestReadmesStay(t *testing.T) {
	links, err := sanitize.NewLinks([]string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sanitize.New(sanitize.Options{Links: links})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	changed := 0
	by := make(map[string]int)
	roots := packages(t)
	var names []string
	for name := range roots {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		root := roots[name]
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata") && path != root {
				return fs.SkipDir
			}
			if !strings.HasPrefix(strings.ToLower(d.Name()), "readme") || !d.Type().IsRegular() {
				return nil
			}
			b, err := os.ReadFile(path)
			text := string(b)
			if err != nil || seen[text] || len(text) > 200<<10 || !readmeTags.MatchString(text) || strings.Contains(text, "style=") || strings.Contains(text, "<style") {
				return nil
			}
			seen[text] = true
			clean, found := s.Sanitize(text)
			if clean == text {
				return nil
			}
			if slices.ContainsFunc(found, func(f sanitize.Finding) bool {
				return strings.HasPrefix(f.Rule, "link/") || strings.HasPrefix(f.Rule, "unicode/") || slices.Contains([]string{"html/url", "html/script", "html/handler", "html/comment"}, f.Rule)
			}) {
				delete(seen, text)
				return nil
			}
			changed++
			for _, f := range found {
				by[f.Rule]++
			}
			t.Logf("%s %s: %v at %q", name, strings.TrimPrefix(path, root), found, firstChange(text, clean))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) < 100 { // a share of fewer says little
		t.Skipf("only %d texts are on this machine: go mod download and npm ci --prefix .ci/node fetch them", len(seen))
	}
	t.Logf("%d of %d texts of Markdown with HTML are changed, by %v", changed, len(seen), by)
	if changed*20 > len(seen) {
		t.Errorf("%d of %d texts are changed: more than 5 %%", changed, len(seen))
	}
}
