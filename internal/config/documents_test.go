package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/sanitize"
)

// Every profile that there is can be configured, wherever one is named.
func TestEveryProfile(t *testing.T) {
	for _, p := range sanitize.Profiles() {
		file := write(t, filepath.Join(t.TempDir(), "wasmgate.yaml"), `version: 1
sanitize: {profile: `+string(p)+`, tools: {"a__*": `+string(p)+`}, mime: {"text/*": `+string(p)+`}}
servers: {a: {command: x, sanitize: `+string(p)+`}}
`)
		c, err := config.Load(file, options(t.TempDir()))
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		if got := []string{c.Sanitize.Profile, c.Sanitize.Tools[0].Profile, c.Sanitize.MIME[0].Profile, c.Servers[0].Sanitize}; slices.ContainsFunc(got, func(s string) bool { return s != string(p) }) {
			t.Errorf("%s: %q", p, got)
		}
	}
}

var (
	yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	// What begins a wasmgate.yaml or a part of one; other blocks are of other files.
	topLevel = regexp.MustCompile(`(?m)^(version|listen|principals|servers|sanitize|policy|telemetry|notify|audit|auth|groups|agents|approvals|public_url|tools): ?[^\n-]*(\n|$)`)
	// What stands for something of the reader's, or is not there in a test.
	ofTheReader = regexp.MustCompile(`does not exist|\.\.\.|no group is named`)
)

// What the documents show of a configuration is one: every key and word is known.
func TestDocumentsShowConfigurations(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	byKind, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, name := range slices.Concat(documents, byKind, []string{"../../README.md"}) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlBlock.FindAllSubmatchIndex(text, -1) {
			block, line := string(text[m[2]:m[3]]), 1+strings.Count(string(text[:m[2]]), "\n")
			if !topLevel.MatchString(block) || strings.Contains(block, "- name:") { // a manifest
				continue
			}
			if !strings.Contains(block, "version: 1\n") {
				block = "version: 1\n" + block
			}
			shown++
			dir := t.TempDir()
			for _, file := range []string{"gw.crt", "gw.key", "clients.pem"} {
				write(t, filepath.Join(dir, file), "")
			}
			o := options(dir)
			o.Getenv = func(string) (string, bool) { return "a value of the reader's own", true }
			_, err := config.Load(write(t, filepath.Join(dir, "wasmgate.yaml"), block), o)
			var problems tree.Problems
			if err != nil && !errors.As(err, &problems) {
				t.Errorf("%s:%d: %v", name, line, err)
			}
			for _, p := range problems {
				if !ofTheReader.MatchString(p.Message) {
					t.Errorf("%s:%d: %s: %s", name, line+p.Line-1, p.Path, p.Message)
				}
			}
		}
	}
	if shown < 15 {
		t.Errorf("the documents show %d configurations", shown)
	}
}
