package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/wasmgate/wasmgate/internal/product"
)

// literals returns the strings of Go files that match, in the folders below the module's
// root, tests left out.
func literals(t *testing.T, pattern string, folders ...string) (all []string) {
	t.Helper()
	is := regexp.MustCompile(pattern)
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join("../../..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if _, imports := n.(*ast.ImportSpec); imports {
					return false
				}
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil {
						all = append(all, is.FindAllString(s, -1)...)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func document(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A section says what each code means, and what to do. Its anchor is the code, to which refusals lead.
func TestCodesAreDocumented(t *testing.T) {
	codes := literals(t, `\b(refused_[a-z_]+|trap_[a-z]+|tool_error|cancelled|spawn_failed|not_connected)\b`, "gate/refusal.go")
	if len(codes) < 20 {
		t.Fatalf("only %q were found: they are elsewhere now", codes)
	}
	sections := anchors(document(t, "docs/reference/refusals.md"))
	if _, page, _ := strings.Cut(product.Help("refused_pin"), "/blob/main/"); page != "docs/reference/refusals.md#refused_pin" {
		t.Errorf("a refusal leads to %s", page)
	}
	for _, code := range append(codes, "timeout", "transport", "protocol") {
		if !sections[code] {
			t.Errorf("docs/reference/refusals.md has no section %s", code)
		}
	}
}

func TestFindingsAreDocumented(t *testing.T) {
	found := literals(t, `^((control|unicode|token|html|link|text|content|input|schema)/[a-z0-9-]+|reserved|redacted)$`, "sanitize/findings.go", "gate")
	found = slices.DeleteFunc(found, func(s string) bool { return s == "text/plain" || s == "text/html" }) // media types
	if len(found) < 25 {
		t.Fatalf("only %q were found: they are elsewhere now", found)
	}
	table := document(t, "docs/reference/sanitizing.md")
	for _, rule := range found {
		if !strings.Contains(table, "`"+rule+"`") {
			t.Errorf("docs/reference/sanitizing.md does not say what %s is", rule)
		}
	}
}

// link is a link in Markdown to another page or to an anchor.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// code is what Markdown shows as it is.
var code = regexp.MustCompile("(?s)```.*?\n```|`[^`\n]*`")

// heading is a heading of a page, from which its anchors are made.
var heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)

// anchors returns the anchors of a page as GitHub makes them from headings.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		kept := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, h[1])
		all[kept] = true
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	seen := 0
	for _, name := range pages(t) {
		for _, l := range link.FindAllStringSubmatch(code.ReplaceAllString(document(t, name), "code"), -1) {
			target, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(target, ":") { // another site
				continue
			}
			seen++
			page := name
			if target != "" {
				page = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join("../../..", filepath.FromSlash(page))); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, l[1])
			} else if anchor != "" && !anchors(document(t, page))[anchor] {
				t.Errorf("%s links to %s, which has no such heading", name, l[1])
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d links were found", seen)
	}
}

// A page that nothing links to is not found.
func TestPagesAreReached(t *testing.T) {
	reached := map[string]bool{"README.md": true}
	for next := []string{"README.md"}; len(next) > 0; {
		name := next[0]
		next = next[1:]
		for _, l := range link.FindAllStringSubmatch(code.ReplaceAllString(document(t, name), "code"), -1) {
			target, _, _ := strings.Cut(l[1], "#")
			page := path.Join(path.Dir(name), target)
			if target != "" && strings.HasSuffix(target, ".md") && !strings.Contains(target, ":") && !reached[page] {
				reached[page], next = true, append(next, page)
			}
		}
	}
	for _, name := range pages(t) {
		if !reached[name] {
			t.Errorf("no page that README.md leads to links to %s", name)
		}
	}
}

// What a platform engineer looks for is at most two clicks from README.md.
func TestTwoClicks(t *testing.T) {
	links := func(name string) (all []string) {
		for _, l := range link.FindAllStringSubmatch(code.ReplaceAllString(document(t, name), "code"), -1) {
			if target, _, _ := strings.Cut(l[1], "#"); strings.HasSuffix(target, ".md") && !strings.Contains(target, ":") {
				all = append(all, path.Join(path.Dir(name), target))
			}
		}
		return all
	}
	near := links("README.md")
	for _, name := range slices.Clone(near) {
		near = append(near, links(name)...)
	}
	for _, page := range []string{
		"install", "run-as-a-service", "containers", "kubernetes", "environment", "tls", "team", "identity-providers", "cluster", "monitor", "backup", "upgrade",
	} {
		if !slices.Contains(near, "docs/how-to/"+page+".md") {
			t.Errorf("docs/how-to/%s.md is more than two clicks from README.md", page)
		}
	}
}

// pages are README.md, SECURITY.md and the pages of docs.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "SECURITY.md", "CONTRIBUTING.md"}
	err := fs.WalkDir(os.DirFS("../../.."), "docs", func(name string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".md") {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	namedTests = regexp.MustCompile("((?:`(?:Test|Benchmark|Fuzz)\\w+(?:/\\w+)?`(?:, )?)+)(?: \\(([\\w/-]+)\\))?")
	testName   = regexp.MustCompile("`(\\w+)(?:/(\\w+))?`")
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
)

// A promise names the tests that hold it. Each of them exists, in the folder that follows it.
func TestPromisesNameTests(t *testing.T) {
	root := os.DirFS("../../..")
	tests := map[string][]string{} // folders, by test
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "node_modules" || e.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(root, name)
		for _, f := range testFunc.FindAllSubmatch(source, -1) {
			tests[string(f[1])] = append(tests[string(f[1])], path.Dir(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// parts has the file that names the parts of a test, and the form of the name in it.
	parts := map[string][2]string{"TestE2E": {"cmd/internal/e2e/*/e2e_test.go", `{Name: "%s", `}, "TestScripts": {"cmd/internal/scripts/*/testdata/%s.txtar", ""}}
	seen := 0
	for _, row := range strings.Split(document(t, "SECURITY.md"), "\n") {
		for _, list := range namedTests.FindAllStringSubmatch(row, -1) {
			for _, test := range testName.FindAllStringSubmatch(list[1], -1) {
				seen++
				name, part, folder := test[1], test[2], list[2]
				if in := tests[name]; in == nil || folder != "" && !slices.Contains(in, folder) {
					t.Errorf("there is no %s in %q, but in %q", name, folder, in)
				}
				if part == "" {
					continue
				}
				files, _ := fs.Glob(root, strings.Replace(parts[name][0], "%s", part, 1)) // fails for a bad pattern only
				if !slices.ContainsFunc(files, func(file string) bool {
					source, err := fs.ReadFile(root, file)
					return err == nil && strings.Contains(string(source), strings.Replace(parts[name][1], "%s", part, 1))
				}) {
					t.Errorf("%s has no part %s", name, part)
				}
			}
		}
		if strings.HasPrefix(row, "| ") && row[2] >= '1' && row[2] <= '9' && !namedTests.MatchString(row) {
			t.Errorf("no test: %s", row)
		}
	}
	if seen < 200 {
		t.Errorf("only %d tests are named", seen)
	}
}

// generated are the parts of documents that programs write.
var generated = regexp.MustCompile(`(?s)<!-- (fields of the input|allowlist begin).*?<!-- (end of the fields|allowlist end)`)

// What people have to read stays short: a page that grows takes its words from others. SECURITY.md is
// apart, since a gap left out there to save words would be a lie.
func TestDocumentsAreShort(t *testing.T) {
	words := len(strings.Fields(document(t, "README.md")))
	err := filepath.WalkDir("../../../docs", func(path string, e fs.DirEntry, err error) error {
		switch name := filepath.ToSlash(path); {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "internals":
			return fs.SkipDir
		case filepath.Ext(name) == ".md" && !strings.HasSuffix(name, "reference/commands.md") && !strings.HasSuffix(name, "reference/configuration.md"):
			b, err := os.ReadFile(path)
			words += len(strings.Fields(generated.ReplaceAllString(string(b), "")))
			return err
		}
		return nil
	})
	if err != nil || words > 35_000 {
		t.Errorf("README.md and docs, internals and generated parts apart, have %d words, of at most 35,000: %v", words, err)
	}
}

func TestReadmeIsShort(t *testing.T) {
	if words := len(strings.Fields(document(t, "README.md"))); words > 900 {
		t.Errorf("README.md has %d words, of at most 900", words)
	}
}
