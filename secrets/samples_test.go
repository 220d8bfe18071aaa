package secrets_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/secrets"
)

// A sample is a text by which gitleaks tests a rule of its own.
type sample struct {
	rule, path, text string
	positive         bool
}

const gitleaksModule = "github.com/zricethezav/gitleaks/v8"

// samples returns gitleaks' own samples. They are part of the program that writes its rules. That
// is built here with two of its files replaced: samples are printed rather than checked, and their
// secrets come from a seed.
func samples(t testing.TB) []sample {
	t.Helper()
	toolchain.Need(t, "gitleaks")
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "samples.exe")
	from := filepath.Join(command(t, "gitleaks", nil, "go", "list", "-m", "-f", "{{.Dir}}", gitleaksModule), "cmd", "generate")
	_, _ = files(t, from, []string{".go"}, 1<<30, func(path, text string) {
		if !strings.HasSuffix(path, "_test.go") {
			write(t, filepath.Join(dir, strings.TrimPrefix(path, from)), strings.ReplaceAll(text, gitleaksModule+"/cmd/generate/", "samples/"))
		}
	})
	for to, ours := range map[string]string{"config/utils/validate.go": "testdata/samples/validate.go", "secrets/regen.go": "testdata/samples/regen.go", "go.mod": "gitleaks/go.mod", "go.sum": "gitleaks/go.sum"} {
		text, err := read(filepath.FromSlash(ours))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, filepath.FromSlash(to)), strings.Replace(text, "module github.com/wasmgate/wasmgate/secrets/gitleaks", "module samples", 1))
	}
	command(t, dir, nil, "go", "build", "-o", program, "samples/config")
	seed := seed.Of(t)
	out := command(t, filepath.Join(from, "config"), []string{fmt.Sprintf("SAMPLES_SEED=%d", seed)}, program, os.DevNull)

	var all []sample
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var s struct {
			Rule, Path          string
			Positive, Negatives []string
		}
		if err := d.Decode(&s); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, text := range s.Positive {
			all = append(all, sample{s.Rule, s.Path, text, true})
		}
		for _, text := range s.Negatives {
			all = append(all, sample{s.Rule, s.Path, text, false})
		}
	}
	if len(all) < 1000 {
		t.Fatalf("only %d samples", len(all))
	}
	return all
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func command(t testing.TB, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// assignment takes a sample apart that gives a value to a name.
var assignment = regexp.MustCompile(`^[\s{(]*(?:var |const |string |String |export )?["'$]?([A-Za-z][\w.-]{1,50})["']?(?: string)?\s*(?:=>|:{0,3}=|[?.]=|:|,)\s*["'` + "`" + `]?([^\s"'` + "`" + `;{}?:=/][^\s"'` + "`" + `;{}]{7,})["'` + "`" + `]?[\s;,})]*$`)

// All of gitleaks' own positive samples are found, as they are, and where they are the value of a
// member; of those that give a value to a name the value is found under that name. Findings that
// are only reported are redacted where nothing is only reported, as in the log. The negatives are
// left alone.
func TestSamplesOfTheLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("a program that prints the samples is built, and thousands are judged: the full run has them")
	}
	serve := newScanner(t, secrets.Options{Decode: true, Report: []string{secrets.RuleGeneric}})
	log := newScanner(t, secrets.Options{Decode: true})
	counts := map[string][2]int{}
	judge := func(what string, held bool, s sample) {
		n := counts[what]
		n[1]++
		if held {
			n[0]++
		} else {
			t.Logf("%s: %s: %s", what, s.rule, shape(s.text))
		}
		counts[what] = n
	}
	all, positive := samples(t), map[string]bool{}
	for _, s := range all {
		positive[s.text] = positive[s.text] || s.positive
	}
	for _, s := range all {
		if !s.positive && positive[s.text] { // another rule's
			continue
		}
		if !s.positive {
			clean, _ := serve.RedactNamed(s.path, "text", s.text)
			judge("a negative", clean == s.text, s)
			continue
		}
		found := len(serve.FindIn(s.path, s.text)) > 0
		clean, _ := log.RedactIn(s.path, s.text)
		judge("a positive", found, s)
		judge("in the log", !found || clean != s.text, s)
		if m := assignment.FindStringSubmatch(s.text); m != nil && found {
			judge("a member", len(serve.FindNamed(s.path, m[1], m[2])) > 0, s)
			clean, _ := log.RedactNamed(s.path, m[1], m[2])
			judge("a member in the log", clean != m[2], s)
		}
	}
	for what, n := range counts {
		t.Logf("%s: %d of %d", what, n[0], n[1])
	}
	for what, least := range map[string]float64{"a positive": 0.99, "in the log": 1, "a member": 0.99, "a member in the log": 1, "a negative": 0.99} {
		if n := counts[what]; n[1] < 100 || float64(n[0]) < least*float64(n[1]) {
			t.Errorf("%s: held %d times of %d", what, n[0], n[1])
		}
	}
}

// shape shows a sample without what could be taken for a secret.
func shape(text string) string {
	return cutTo(regexp.MustCompile(`[A-Za-z0-9+/=_-]{16,}`).ReplaceAllStringFunc(text, func(s string) string { return s[:4] + "~" }), 200)
}

func cutTo(s string, n int) string { return s[:min(len(s), n)] }
