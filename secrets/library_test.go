package secrets_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/secrets"
)

// A fragment is a text of a file.
type fragment struct{ Path, Text string }

// gitleaks runs the program in the folder gitleaks, a module of its own that links the library.
func gitleaks(t testing.TB, stdin []byte, args ...string) []byte {
	t.Helper()
	toolchain.Need(t, "gitleaks")
	c := exec.CommandContext(t.Context(), "go", append([]string{"run", "-C", "gitleaks", "."}, args...)...)
	var stderr bytes.Buffer
	c.Stdin, c.Stderr = bytes.NewReader(stdin), &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("gitleaks %v: %v\n%s", args, err, &stderr)
	}
	return out
}

// The rules that are linked are those of the version in gitleaks/go.mod.
func TestRulesAreTheLibrarys(t *testing.T) {
	want, err := os.ReadFile("gitleaks.toml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(gitleaks(t, nil, "rules"), want) {
		t.Error("gitleaks.toml is out of date: go generate ./secrets")
	}
}

func sorted(raws []secrets.Raw) []secrets.Raw {
	slices.SortFunc(raws, func(a, b secrets.Raw) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Match, b.Match), cmp.Compare(a.Secret, b.Secret))
	})
	return raws
}

// same fails if gitleaks finds anything else in one of the texts, and returns how much it finds.
func same(t *testing.T, texts []fragment) (found int) {
	t.Helper()
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]secrets.Raw
	if err := json.Unmarshal(gitleaks(t, in, "find"), &all); err != nil || len(all) != len(texts) {
		t.Fatalf("%d answers to %d texts: %v", len(all), len(texts), err)
	}
	s := newOfLibrary(t)
	for i, text := range texts {
		want, got := sorted(all[i]), sorted(s.Raws(text.Path, text.Text))
		if !slices.Equal(got, want) {
			t.Errorf("%s in %.200q:\ngitleaks finds %q\nthis finds     %q", text.Path, text.Text, want, got)
		}
		found += len(want)
	}
	return found
}

func newScanner(t testing.TB, o secrets.Options) *secrets.Scanner {
	t.Helper()
	s, err := secrets.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newOfLibrary returns a scanner without the rules that the library has not.
func newOfLibrary(t testing.TB) *secrets.Scanner {
	return newScanner(t, secrets.Options{Skip: slices.Collect(maps.Keys(secrets.OwnRules()))})
}

// files calls f for each file below a folder, up to a number of bytes.
func files(t testing.TB, root string, suffixes []string, limit int, f func(path, text string)) (n, bytes int) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(path, s) }) || bytes > limit {
			return err
		}
		text, err := read(path)
		if err != nil {
			return err
		}
		n, bytes = n+1, bytes+len(text)
		f(path, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, bytes
}

func read(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var r io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(file); err != nil {
			return "", err
		}
	}
	b, err := io.ReadAll(r)
	return string(b), err
}

func corpus(t *testing.T) string {
	dir := os.Getenv("WASMGATE_CORPUS")
	if dir == "" {
		t.Skip("WASMGATE_CORPUS is not set: it names the folder of the test corpora")
	}
	return dir
}

func TestFindingsOfTheCorporaAreTheLibrarys(t *testing.T) {
	var texts []fragment
	n, bytes := files(t, corpus(t), []string{".json", ".jsonl", ".md"}, 8<<20, func(_, text string) {
		texts = append(texts, fragment{Text: strings.ToValidUTF8(text, "")})
	})
	t.Logf("%d files, %d bytes, %d findings", n, bytes, same(t, texts))
	if n < 100 {
		t.Errorf("only %d files", n)
	}
}

// The sources of Go are code that everybody who runs this test has.
func TestFindingsInCodeAreTheLibrarys(t *testing.T) {
	if raced || testing.Short() {
		t.Skip("one goroutine reads megabytes, in which the race detector finds nothing: compared without it, in the full run")
	}
	var texts []fragment
	total := 0
	for _, dir := range []string{"crypto/tls", "crypto/x509", "encoding/pem", "net/url", "cmd/go/internal/auth"} {
		_, bytes := files(t, filepath.Join(goroot(t), "src", dir), []string{".go", ".pem", ".txt", ".json"}, 2<<20, func(_, text string) {
			texts = append(texts, fragment{Text: strings.ToValidUTF8(text, "")})
		})
		total += bytes
	}
	found := same(t, texts)
	t.Logf("%d bytes, %d findings", total, found)
	if found < 10 {
		t.Errorf("only %d findings: nothing was compared", found)
	}
}

// places are texts into which a secret is put.
var places = map[string]string{
	"alone": "%s",
	"prose": "Dear all,\nplease use %s\nfor the time being, and tell nobody.\n",
	"json":  `{"id": 17, "content": [{"type": "text", "text": "%s"}], "isError": false}`,
	"code":  "func main() {\n\tconst value = `%s`\n\tfmt.Println(value)\n}\n",
	"many":  "key=%[1]s\n%[1]s;%[1]s token: \"%[1]s\"",
}

// paths are names of files to which a rule is confined.
var paths = []string{"", "main.tf", "deploy.yaml", "nuget.config", "index.php"}

func TestFindingsOfSyntheticSecretsAreTheLibrarys(t *testing.T) {
	r, each := seed.Rand(t), secretsOfEach
	var texts []fragment
	if testing.Short() {
		each = 1
	}
	for _, src := range sources(t) {
		for range each {
			x := secret(r, src.tree)
			for _, format := range places {
				for _, path := range paths {
					if path != "" && src.Path == "" {
						continue
					}
					texts = append(texts, fragment{path, fmt.Sprintf(format, x)})
				}
			}
		}
	}
	found := same(t, texts)
	t.Logf("%d findings", found)
	if found < 250*each {
		t.Errorf("only %d findings: nothing was compared", found)
	}
}

// What is cut, doubled and joined at random lies at the borders of what the
// expressions match, and their windows overlap.
func TestFindingsOfTextsCutAtRandomAreTheLibrarys(t *testing.T) {
	r, all := seed.Rand(t), sources(t)
	var texts []fragment
	glue := []string{"", "", " ", "\n", "\n\n", "\"", "'", ": ", " = ", "=", "-", ".", "_", ";", "\\n", "x", "9", "\u00e9", "\U0001f511", "\xff", "\x80\x80"}
	for range unraced.Fewer(1000) {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			src := all[r.IntN(len(all))]
			part := secret(r, src.tree)
			switch r.IntN(4) {
			case 0:
				part = part[r.IntN(len(part)):]
			case 1:
				part = part[:r.IntN(len(part))]
			case 2:
				part = src.Keywords[r.IntN(len(src.Keywords))]
			}
			b.WriteString(part + glue[r.IntN(len(glue))])
		}
		texts = append(texts, fragment{Text: strings.ToValidUTF8(b.String(), "?")})
	}
	found := same(t, texts)
	t.Logf("%d findings", found)
	if found < unraced.Fewer(300) {
		t.Errorf("only %d findings: nothing was compared", found)
	}
}
