package install_test

import (
	"os"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/hook/install"
)

// Hooks of others stay, also those of somebody who has a folder of our name.
func TestHooksOfOthersStay(t *testing.T) {
	const others = `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"/home/ann/wasmgate/scripts/hook.sh"}]}]}}`
	for _, a := range install.Agents() {
		if a.ID == "opencode" {
			continue // whose hooks are a file of their own
		}
		for _, l := range []install.Line{
			{Program: "/usr/bin/wasmgate", Args: []string{"hook", "--state", "/s"}},
			{Program: "/a folder/wasmgate", Args: []string{"hook", "--state", "/s", "--observe"}},
			{Program: "/usr/bin/another-name", Args: []string{"hook", "--state", "/s"}},
			{Program: "/usr/bin/wasmgate-hook", Args: []string{"--state", "/s"}},
		} {
			settings, err := a.With([]byte(others), l)
			if err != nil {
				t.Fatal(err)
			}
			if missing := a.Missing(settings); missing != nil {
				t.Errorf("%s: %s: missing %q", a.ID, l.Program, missing)
			}
			again, err := a.With(settings, l)
			if err != nil || string(again) != string(settings) {
				t.Errorf("%s: %s: done again: %v\n%s", a.ID, l.Program, err, again)
			}
			left, err := a.Without(settings)
			if err != nil || !strings.Contains(string(left), "/home/ann/wasmgate/scripts/hook.sh") || strings.Contains(string(left), "--state") {
				t.Errorf("%s: %s: left %v\n%s", a.ID, l.Program, err, left)
			}
		}
	}
}

// A project that switches hooks off is named.
func TestDoctorLooksAtTheFolder(t *testing.T) {
	a, _ := install.Of("claude-code")
	said := func() string {
		checks, err := a.Doctor(t.Context(), install.Line{Program: "/nowhere"}, true, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if c.Check == "this folder" && !c.OK {
				return c.Said
			}
		}
		return ""
	}
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	if got := said(); got != "" {
		t.Error(got)
	}
	if err := os.Mkdir(".claude", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(".claude/settings.json", []byte(`{"disableAllHooks":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := said(); !strings.Contains(got, "settings.json") {
		t.Errorf("said %q", got)
	}
}
