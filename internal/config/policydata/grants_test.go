package policydata_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/files"
)

const byHand = `# who may do what

- to: [local]   # us
  tools:
    - files__read_*   # reading
    - files__write
# the others
- {to: ["*"], servers: [tickets], except: ["tickets__delete_*"]}
# end
`

func TestAddGrant(t *testing.T) {
	tests := map[string]struct {
		file, want string
		added      bool
	}{
		"a file that is not there is made":           {"", "- {to: [local], tools: [files__read]}\n", true},
		"the written empty list is replaced":         {"# mine\n[]\n", "# mine\n- {to: [local], tools: [files__read]}\n", true},
		"a file without an end of line":              {"- {to: [a], tools: [b__c]}", "- {to: [a], tools: [b__c]}\n- {to: [local], tools: [files__read]}\n", true},
		"the entries' indentation is kept":           {"  - to: [a]\n    tools: [b__c]\n", "  - to: [a]\n    tools: [b__c]\n  - {to: [local], tools: [files__read]}\n", true},
		"what is granted already":                    {"- {to: [a, local], tools: [x__y, files__read]}\n", "", false},
		"what is granted to somebody else":           {"- {to: [a], tools: [files__read]}\n", "- {to: [a], tools: [files__read]}\n- {to: [local], tools: [files__read]}\n", true},
		"what is granted and excepted, in a pattern": {"- {to: [local], tools: [files__read], except: [\"files__*\"]}\n", "- {to: [local], tools: [files__read], except: [\"files__*\"]}\n- {to: [local], tools: [files__read]}\n", true},
		"hand-written lines stay":                    {byHand, byHand + "- {to: [local], tools: [files__read]}\n", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "new", "grants.yaml")
			if tt.file != "" {
				write(t, path, tt.file)
			}
			added, err := policydata.AddGrant(t.Context(), policydata.GrantsFile(path), policydata.Grant{To: []string{"local"}, Tools: []string{"files__read"}})
			if err != nil || added != tt.added {
				t.Fatalf("added %v, error %v", added, err)
			}
			want := tt.want
			if !added {
				want = tt.file
			}
			if diff := cmp.Diff(want, read(t, path)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A tool that is granted for good is granted and named under always; to revoke it
// takes back both.
func TestAddAlways(t *testing.T) {
	const always = "- {to: [local], tools: [mail__send], always: [mail__send]}\n"
	for name, tt := range map[string]struct {
		file, want string
		added      bool
	}{
		"a file that is not there is made":  {"", always, true},
		"what is granted, but asked":        {"- {to: [local], tools: [mail__send]}\n", "- {to: [local], tools: [mail__send]}\n" + always, true},
		"what is granted for good already":  {"- {to: [a, local], tools: [mail__send, x__y], always: [mail__send]}\n", "- {to: [a, local], tools: [mail__send, x__y], always: [mail__send]}\n", false},
		"what is granted for good, but not": {"- {to: [local], tools: [mail__send], always: [mail__send], except: [\"mail__*\"]}\n", "- {to: [local], tools: [mail__send], always: [mail__send], except: [\"mail__*\"]}\n" + always, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "grants.yaml")
			if tt.file != "" {
				write(t, path, tt.file)
			}
			added, err := policydata.AddAlways(t.Context(), policydata.GrantsFile(path), "mail__send", "local")
			if err != nil || added != tt.added {
				t.Fatalf("added %v, error %v", added, err)
			}
			if diff := cmp.Diff(tt.want, read(t, path)); diff != "" {
				t.Error(diff)
			}
		})
	}
	path := write(t, filepath.Join(t.TempDir(), "grants.yaml"), always)
	if r, err := policydata.RevokeGrant(t.Context(), policydata.GrantsFile(path), "mail__send"); err != nil || r != (policydata.Revoked{Removed: 1}) || read(t, path) != "" {
		t.Errorf("revoked %+v, error %v, left %q", r, err, read(t, path))
	}
}

func TestRevokeGrant(t *testing.T) {
	tests := map[string]struct {
		file, pattern, want string
		revoked             policydata.Revoked
	}{
		"the exact pattern goes, with its comments kept as lines": {
			byHand, "files__write",
			"# who may do what\n\n# us\n# reading\n- {to: [local], tools: [\"files__read_*\"]}\n# the others\n- {to: [\"*\"], servers: [tickets], except: [\"tickets__delete_*\"]}\n# end\n",
			policydata.Revoked{Removed: 1},
		},
		"the last pattern takes the entry with it": {
			"# a\n- {to: [local], tools: [a__b]} # why\n# b\n- {to: [x], tools: [y__z]}\n", "a__b",
			"# a\n# why\n# b\n- {to: [x], tools: [y__z]}\n", policydata.Revoked{Removed: 1},
		},
		"entries beside each other all lose it": {
			"- {to: [a], tools: [a__b]}\n- to: [b]\n  tools:\n    - a__b\n- {to: [c], tools: [c__d, a__b]}\n", "a__b",
			"- {to: [c], tools: [c__d]}\n", policydata.Revoked{Removed: 3},
		},
		"what servers may ask stays granted": {
			"- {to: [a], tools: [a__b, a__c], asks: [roots, sampling]}\n", "a__b",
			"- {to: [a], tools: [a__c], asks: [roots, sampling]}\n", policydata.Revoked{Removed: 1},
		},
		"what covers it gets an exception": {
			byHand, "files__read_text",
			"# who may do what\n\n# us\n# reading\n- {to: [local], tools: [\"files__read_*\", files__write], except: [files__read_text]}\n# the others\n- {to: [\"*\"], servers: [tickets], except: [\"tickets__delete_*\"]}\n# end\n",
			policydata.Revoked{Excepted: 1},
		},
		"a server that covers it gets one too": {
			"- {to: [a], servers: [tickets], except: [\"tickets__delete_*\"]}\n", "tickets__create",
			"- {to: [a], servers: [tickets], except: [\"tickets__delete_*\", tickets__create]}\n", policydata.Revoked{Excepted: 1},
		},
		"a wider pattern excepts from narrower ones": {
			"- {to: [a], tools: [files__read]}\n", "files__*",
			"- {to: [a], tools: [files__read], except: [\"files__*\"]}\n", policydata.Revoked{Excepted: 1},
		},
		"what covers it still is counted": {
			"- {to: [a], tools: [files__read]}\n- {to: [a], servers: [files]}\n", "files__read",
			"- {to: [a], servers: [files]}\n", policydata.Revoked{Removed: 1, Left: 1},
		},
		"what nothing covers": {byHand, "other__x", byHand, policydata.Revoked{}},
		"a dash on a line of its own": {
			"-\n  to: [a]\n  tools: [a__b, a__c]\n-\n  to: [b]\n  tools: [a__d]\n", "a__b",
			"- {to: [a], tools: [a__c]}\n-\n  to: [b]\n  tools: [a__d]\n", policydata.Revoked{Removed: 1},
		},
		"lines that end as on Windows": {
			"# a\r\n- to: [a] # b\r\n  tools: [a__b, a__c]\r\n", "a__b",
			"# a\r\n# b\n- {to: [a], tools: [a__c]}\n", policydata.Revoked{Removed: 1},
		},
		"a number sign inside of quotes is not a comment": {
			"- {to: [a], tools: [a__b], resources: [\"x # y\", \"z:#1\"]}\n", "a__b",
			"- {to: [a], resources: [\"x # y\", \"z:#1\"]}\n", policydata.Revoked{Removed: 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "grants.yaml"), tt.file)
			got, err := policydata.RevokeGrant(t.Context(), policydata.GrantsFile(path), tt.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.revoked, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.want, read(t, path)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a line editor cannot edit is left as it is.
func TestGrantsThatOnlyAPersonCanEdit(t *testing.T) {
	tests := map[string]string{
		"one line for some":            "[{to: [a], tools: [a__b]}, {to: [b], tools: [a__b, a__c]},\n {to: [c], tools: [x__y]}]\n",
		"an anchor that others need":   "- {to: &us [a, b], tools: [a__b, a__c]}\n- {to: *us, tools: [x__y]}\n",
		"a mark of the document's end": "- {to: [a], tools: [x__y]}\n...\n",
	}
	for name, file := range tests {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "grants.yaml"), file)
			_, err := policydata.RevokeGrant(t.Context(), policydata.GrantsFile(path), "a__b")
			if err == nil {
				_, err = policydata.AddGrant(t.Context(), policydata.GrantsFile(path), policydata.Grant{To: []string{"local"}, Tools: []string{"new__tool"}})
			}
			if err == nil || !strings.Contains(err.Error(), "by hand") {
				t.Errorf("error %v, and the file is now\n%s", err, read(t, path))
			}
			if _, err := policydata.ReadGrants(path); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGrantsFileThatIsBroken(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "grants.yaml"), "- {too: [a]}\n- {to: [a], tools: a__b}\n")
	for name, edit := range map[string]func() error{
		"add": func() error {
			_, err := policydata.AddGrant(t.Context(), policydata.GrantsFile(path), policydata.Grant{To: []string{"local"}, Tools: []string{"a__b"}})
			return err
		},
		"revoke": func() error {
			_, err := policydata.RevokeGrant(t.Context(), policydata.GrantsFile(path), "a__b")
			return err
		},
	} {
		var problems tree.Problems
		if err := edit(); !errors.As(err, &problems) || len(problems) < 2 || problems[0].Line != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A grants file that is a link stays one, and keeps its mode.
func TestGrantsFileBehindLink(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "dotfiles", "grants.yaml"), "- {to: [a], tools: [a__b]}\n")
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "grants.yaml")
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if _, err := policydata.AddGrant(t.Context(), policydata.GrantsFile(link), policydata.Grant{To: []string{"local"}, Tools: []string{"c__d"}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(file)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("%v %v", info, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is %v now, error %v", info.Mode(), err)
	}
	if got := read(t, file); !strings.Contains(got, "c__d") {
		t.Errorf("the file holds %q", got)
	}
}

const editorEnv = "CONFIG_TEST_EDIT"

// Edits by several processes at once are all kept.
func TestGrantsEditedAtOnce(t *testing.T) {
	if path := os.Getenv(editorEnv); path != "" {
		for i := range 20 {
			grant := policydata.Grant{To: []string{"local"}, Tools: []string{fmt.Sprintf("p%d__t%d", os.Getpid(), i)}}
			_, err := policydata.AddGrant(t.Context(), policydata.GrantsFile(path), grant)
			for errors.Is(err, files.ErrLocked) { // the others took their time
				_, err = policydata.AddGrant(t.Context(), policydata.GrantsFile(path), grant)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	path := filepath.Join(t.TempDir(), "grants.yaml")
	const processes = 4
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			c := exec.Command(os.Args[0], "-test.run=^TestGrantsEditedAtOnce$")
			c.Env = append(os.Environ(), editorEnv+"="+path)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	grants, err := policydata.ReadGrants(path)
	if err != nil || len(grants) != processes*20 {
		t.Errorf("%d of %d grants, error %v", len(grants), processes*20, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"+files.Temporary)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Whatever a readable grants file looks like, an edit does what it says, or
// refuses and changes nothing; and no comment is lost.
func FuzzEditGrants(f *testing.F) {
	for _, s := range []string{
		"", byHand, "[]", "# a\n[]\n# b\n", "- {to: [a], tools: [b__c]}", "[{to: [a], tools: [b__c]}]", "-\n  to: [a]\n  tools:\n  - b__c\n",
		"- to:\n  - a\n  tools:\n  - b__c # x\n\n\n- to: [b]\n  servers: [b]\n", "---\n- {to: [a], servers: [b]}\n...\n", "- &x {to: [a], tools: [b__c]}\n- *x\n",
		"- to: [a]\n  tools: [\"b__c\",\n    'd__e']\n", "\ufeff- {to: [a], tools: [b__c]}\r\n", "- {to: [\"\\x00\"], tools: [\"\U0001f600*\"]}\n", "- to: [a]\n  tools: [|-\n   b__c]\n",
	} {
		f.Add([]byte(s), "b__c")
	}
	f.Fuzz(func(t *testing.T, file []byte, pattern string) {
		path := write(t, filepath.Join(t.TempDir(), "grants.yaml"), string(file))
		before, err := policydata.ReadGrants(path)
		if err != nil {
			return
		}
		added, err := policydata.AddGrant(t.Context(), policydata.GrantsFile(path), policydata.Grant{To: []string{"local"}, Tools: []string{pattern}})
		after := grants(t, path)
		switch {
		case err != nil || !added:
			if !bytes.Equal([]byte(read(t, path)), file) {
				t.Fatalf("refused with %v, and changed to %q", err, read(t, path))
			}
		case !cmp.Equal(append(slices.Clone(before), policydata.Grant{To: []string{"local"}, Tools: []string{pattern}}), after):
			t.Fatalf("added to %v, which is now %v", before, after)
		}
		text := read(t, path)
		r, err := policydata.RevokeGrant(t.Context(), policydata.GrantsFile(path), pattern)
		if err != nil {
			if read(t, path) != text {
				t.Fatalf("refused with %v, and changed to %q", err, read(t, path))
			}
			return
		}
		if added && r.Removed == 0 {
			t.Fatalf("revoking what was added: %+v", r)
		}
		for _, g := range grants(t, path) {
			if slices.Contains(g.Tools, pattern) && r.Removed > 0 {
				t.Fatalf("%+v still names %q", g, pattern)
			}
		}
		if got, want := strings.Count(read(t, path), "#"), strings.Count(text, "#"); got < want-strings.Count(pattern, "#")*(r.Removed+1) && !strings.ContainsAny(text, "\"'|>") {
			t.Fatalf("comments lost:\n%s\nbefore:\n%s", read(t, path), text)
		}
	})
}

func grants(t *testing.T, path string) []policydata.Grant {
	t.Helper()
	g, err := policydata.ReadGrants(path)
	if err != nil {
		t.Fatalf("the file is unreadable now: %v\n%q", err, read(t, path))
	}
	return g
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAddGrantOfOthers: what is granted by other keys than tools is found again, unless an
// entry withholds a part of it, and is taken back by the same words.
func TestAddGrantOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grants.yaml")
	whole := policydata.Grant{To: []string{"local"}, Servers: []string{"files"}, Asks: []string{"roots"}}
	add := func(g policydata.Grant, want bool) {
		t.Helper()
		if added, err := policydata.AddGrant(t.Context(), policydata.GrantsFile(path), g); err != nil || added != want {
			t.Errorf("%+v: added %v, %v; want %v", g, added, err, want)
		}
	}
	add(whole, true)
	add(whole, false)
	add(policydata.Grant{To: []string{"local"}, Servers: []string{"files"}}, false) // less than there is
	add(policydata.Grant{To: []string{"local"}, Servers: []string{"files"}, Asks: []string{"sampling"}}, true)
	add(policydata.Grant{To: []string{"bob"}, Servers: []string{"files"}}, true)
	if removed, err := policydata.RevokeNamed(t.Context(), policydata.GrantsFile(path), policydata.Grant{To: []string{"local"}, Servers: []string{"files"}}); err != nil || removed != 3 || read(t, path) != "" {
		t.Errorf("removed %d, %v; left %q", removed, err, read(t, path))
	}
	if err := os.WriteFile(path, []byte("- {to: [local], servers: [files], except: [files__rm], resources: [\"file:///a\", \"file:///b\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	add(policydata.Grant{To: []string{"local"}, Servers: []string{"files"}}, true) // nothing excepted
	if removed, err := policydata.RevokeNamed(t.Context(), policydata.GrantsFile(path), policydata.Grant{Resources: []string{"file:///a"}}); err != nil || removed != 1 {
		t.Errorf("removed %d, %v", removed, err)
	}
	if want := "- {to: [local], servers: [files], except: [files__rm], resources: [\"file:///b\"]}\n- {to: [local], servers: [files]}\n"; read(t, path) != want {
		t.Errorf("left %q", read(t, path))
	}
}

func TestGrantsOfGroups(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "grants.yaml"), "- {to: [alice], groups: [docs], except: [files__write]}\n")
	grants, err := policydata.ReadGrants(path)
	if err != nil || len(grants) != 1 || !cmp.Equal(grants[0].Groups, []string{"docs"}) {
		t.Fatalf("grants %+v, %v", grants, err)
	}
	r, err := policydata.RevokeGrant(t.Context(), policydata.GrantsFile(path), "files__read_file")
	if err != nil || r.Excepted != 1 {
		t.Fatalf("revoked %+v, %v", r, err)
	}
	if diff := cmp.Diff("- {to: [alice], groups: [docs], except: [files__write, files__read_file]}\n", read(t, path)); diff != "" {
		t.Error(diff)
	}
}

// Patterns of methods are read from the grants file, and edits of it keep them.
func TestGrantsOfMethods(t *testing.T) {
	path := t.TempDir() + "/grants.yaml"
	write(t, path, "- {to: [alice], tools: [a__b], methods: [\"acme/*\", \"files__acme/x\"], asks: [roots]}\n")
	if _, err := policydata.RevokeGrant(t.Context(), policydata.GrantsFile(path), "a__b"); err != nil {
		t.Fatal(err)
	}
	got, err := policydata.ReadGrants(path)
	want := []policydata.Grant{{To: []string{"alice"}, Methods: []string{"acme/*", "files__acme/x"}, Asks: []string{"roots"}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s\n%s", err, diff, read(t, path))
	}
}

func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
