package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
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

// Whoever meets a code or a finding finds in a table what it means and what to do.
func TestCodesAreDocumented(t *testing.T) {
	codes := literals(t, `\b(refused_[a-z_]+|trap_[a-z]+|tool_error|cancelled|spawn_failed|not_connected)\b`, "gate/refusal.go")
	if len(codes) < 20 {
		t.Fatalf("only %q were found: they are elsewhere now", codes)
	}
	readme := document(t, "README.md")
	for _, code := range append(codes, "timeout", "transport", "protocol") {
		if !strings.Contains(readme, "`"+code+"`") {
			t.Errorf("README.md does not say what to do about %s", code)
		}
	}
}

func TestFindingsAreDocumented(t *testing.T) {
	found := literals(t, `^((control|unicode|token|html|link|text|content|input|schema)/[a-z0-9-]+|reserved|redacted)$`, "sanitize/sanitize.go", "gate")
	found = slices.DeleteFunc(found, func(s string) bool { return s == "text/plain" || s == "text/html" }) // media types
	if len(found) < 25 {
		t.Fatalf("only %q were found: they are elsewhere now", found)
	}
	table := document(t, "docs/sanitizing.md")
	for _, rule := range found {
		if !strings.Contains(table, "`"+rule+"`") {
			t.Errorf("docs/sanitizing.md does not say what %s is", rule)
		}
	}
}
