package lock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// digest returns a digest that consists of one letter.
func digest(c byte) string { return strings.Repeat(string(c), 64) }

func pin(kind lock.Kind, server, name string, c byte) lock.Pin {
	return lock.Pin{Key: lock.Key{Server: server, Kind: kind, Name: name}, Digest: digest(c)}
}

// made returns a pin with its parts.
func made(p lock.Pin, parts lock.Parts) lock.Pin {
	p.Parts = parts
	return p
}

const whole = "# Approved definitions of MCP servers and their tools, by digest. Written by `wasmgate pin approve`.\n" + `wasmgate-lock 1

identity files
  sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa

instructions files
  sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb

module files words
  sha256:2222222222222222222222222222222222222222222222222222222222222222 code:0123456789abcdef

# the new version
tool files read_file
  sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
  sha256:dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd description:0123456789abcdef name:fedcba9876543210

template files file:///{path}
  sha256:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee

tool mail "a \u200b\"b\""
  sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff

prompt mail write
  sha256:1111111111111111111111111111111111111111111111111111111111111111

# at the end
`

func wholePins() []lock.Pin {
	return []lock.Pin{
		pin(lock.Identity, "files", "", 'a'), pin(lock.Instructions, "files", "", 'b'),
		made(pin(lock.Module, "files", "words", '2'), "code:0123456789abcdef"),
		pin(lock.Tool, "files", "read_file", 'c'), made(pin(lock.Tool, "files", "read_file", 'd'), "description:0123456789abcdef name:fedcba9876543210"),
		pin(lock.Template, "files", "file:///{path}", 'e'), pin(lock.Tool, "mail", "a \u200b\"b\"", 'f'), pin(lock.Prompt, "mail", "write", '1'),
	}
}

func TestFileReadsAndWritesTheSameBytes(t *testing.T) {
	f, err := lock.Parse("wasmgate.lock", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(f.Bytes()); got != whole {
		t.Errorf("wrote\n%s\nwant\n%s", got, whole)
	}
	if got := f.Pins(); !slices.Equal(got, wholePins()) {
		t.Errorf("pins = %v", got)
	}
	windows, err := lock.Parse("wasmgate.lock", []byte(strings.ReplaceAll(whole, "\n", "\r\n")))
	if err != nil || string(windows.Bytes()) != whole {
		t.Errorf("with other line ends: %v\n%s", err, windows.Bytes())
	}
}

// The order in which digests were approved does not show.
func TestFileIsTheSameInAnyOrder(t *testing.T) {
	want := string(new(lock.File).With(wholePins()...).Bytes())
	r := seed.Rand(t)
	for range 50 {
		pins := wholePins()
		r.Shuffle(len(pins), func(i, j int) { pins[i], pins[j] = pins[j], pins[i] })
		f := new(lock.File)
		for _, p := range append(pins, pins[:2]...) {
			f = f.With(p)
		}
		if got := string(f.Bytes()); got != want {
			t.Fatalf("wrote\n%s\nwant\n%s", got, want)
		}
	}
}

func TestFileKnowsWhatItHas(t *testing.T) {
	f := new(lock.File).With(wholePins()...)
	for _, p := range wholePins() {
		if !f.Approves(p.Key, p.Digest) || !f.Names(p.Key) || !f.Rules(p.Server) {
			t.Errorf("%v is not in the file", p)
		}
	}
	for name, p := range map[string]lock.Pin{
		"another digest": pin(lock.Tool, "files", "read_file", 'a'), "another kind": pin(lock.Prompt, "files", "read_file", 'c'),
		"another server": pin(lock.Tool, "mail", "read_file", 'c'), "another name": pin(lock.Tool, "files", "read_fil", 'c'),
	} {
		if f.Approves(p.Key, p.Digest) {
			t.Errorf("%s is approved", name)
		}
	}
	if f.Rules("file") || new(lock.File).Rules("") || new(lock.File).Approves(lock.Key{}, "") {
		t.Error("the file rules what it does not have")
	}
}

// If git merges two branches that each approved something, the result reads as both.
func TestFileMerged(t *testing.T) {
	ours := string(new(lock.File).With(pin(lock.Tool, "a", "x", 'a'), pin(lock.Tool, "a", "y", 'a')).Bytes())
	theirs := string(new(lock.File).With(pin(lock.Tool, "a", "x", 'b'), pin(lock.Tool, "b", "z", 'b')).Bytes())
	_, body, _ := strings.Cut(theirs, "wasmgate-lock 1\n")
	f, err := lock.Parse("wasmgate.lock", []byte(ours+body)) // as merge=union does
	if err != nil {
		t.Fatal(err)
	}
	want := []lock.Pin{pin(lock.Tool, "a", "x", 'a'), pin(lock.Tool, "a", "x", 'b'), pin(lock.Tool, "a", "y", 'a'), pin(lock.Tool, "b", "z", 'b')}
	if got := f.Pins(); !slices.Equal(got, want) {
		t.Errorf("pins = %v, want %v", got, want)
	}
}

func TestFileRefusesWhatItDoesNotUnderstand(t *testing.T) {
	const head = "wasmgate-lock 1\n"
	sum := "  sha256:" + digest('a') + "\n"
	for name, tt := range map[string]struct{ text, want string }{
		"a merge conflict":       {head + "<<<<<<< HEAD\ntool a b\n" + sum + "=======\n>>>>>>> theirs\n", "l:2: a merge conflict is not resolved"},
		"a conflict in a block":  {head + "tool a b\n" + sum + "=======\n", "l:4: a merge conflict is not resolved"},
		"another version":        {"wasmgate-lock 2\n", "l:1: expected the line"},
		"no version":             {"tool a b\n" + sum, "l:1: expected the line"},
		"nothing but a comment":  {"# x\n", "l:1: the file does not begin with"},
		"an unknown kind":        {head + "\ntools a b\n" + sum, `l:3: "tools" is not a kind of definition`},
		"the tool has no name":   {head + "tool a\n" + sum, "l:2: expected tool SERVER NAME"},
		"an identity with one":   {head + "identity a b\n" + sum, "l:2: expected identity SERVER"},
		"a bad server":           {head + "tool A_b c\n" + sum, `l:2: "A_b" is not a name of a server`},
		"a name with spaces":     {head + "tool a b c\n" + sum, "l:2: the name"},
		"an empty name":          {head + "tool a \"\"\n" + sum, "l:2: the name"},
		"a hidden character":     {head + "tool a b\u200b\n" + sum, `l:2: the name "b\u200b"`},
		"a short digest":         {head + "tool a b\n  sha256:abc\n", "l:3: expected sha256:"},
		"a digest in capitals":   {head + "tool a b\n  sha256:" + digest('A') + "\n", "l:3: expected sha256:"},
		"a digest with a rest":   {head + "tool a b\n  sha256:" + digest('a') + " x\n", "l:3: expected sha256:"},
		"a part's short digest":  {head + "tool a b\n  sha256:" + digest('a') + " x:12\n", "l:3: expected sha256:"},
		"a digest of nothing":    {head + sum, "l:2: this digest has no item above it"},
		"a digest after a gap":   {head + "tool a b\n" + sum + "\n" + sum, "l:5: this digest has no item above it"},
		"a block without digest": {head + "tool a b\n\ntool a c\n" + sum, "l:3: a__b has no digest"},
		"the last without":       {head + "tool a b\n", "l:2: a__b has no digest"},
		"a long line":            {head + "# " + strings.Repeat("x", 10_000) + "\n", "l:2: the line is longer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lock.Parse("l", []byte(tt.text))
			var syntax *lock.SyntaxError
			if !errors.As(err, &syntax) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("err = %v, want %s", err, tt.want)
			}
		})
	}
	if _, err := lock.Parse("l", []byte(head+strings.Repeat("# x\n", 5<<20))); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a huge file: %v", err)
	}
}

// FuzzParse: what is read is written in a way that reads as the same.
func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("wasmgate-lock 1\ntool a \"\\x00\"\n sha256:" + digest('a'))
	f.Fuzz(func(t *testing.T, text string) {
		file, err := lock.Parse("l", []byte(text))
		if err != nil {
			return
		}
		again, err := lock.Parse("l", file.Bytes())
		if len(text) == 0 {
			return
		}
		if err != nil || !slices.Equal(again.Pins(), file.Pins()) || string(again.Bytes()) != string(file.Bytes()) {
			t.Errorf("%q was written as %q: %v", text, file.Bytes(), err)
		}
	})
}

// Of many who approve at once none loses what it approved.
func TestApproveAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wasmgate.lock")
	const people = 16
	var wg sync.WaitGroup
	for i := range people {
		wg.Go(func() {
			added, err := lock.Approve(path, []lock.Pin{pin(lock.Tool, "a", fmt.Sprintf("t%02d", i), 'a'), pin(lock.Identity, "a", "", 'b')})
			if err != nil || len(added) == 0 {
				t.Errorf("approved %v: %v", added, err)
			}
		})
	}
	wg.Wait()
	f, err := lock.Load(path)
	if err != nil || len(f.Pins()) != people+1 {
		t.Errorf("%d pins, want %d: %v", len(f.Pins()), people+1, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestApproveKeepsModeLinkAndComments(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real.lock")
	if err := errors.Join(os.WriteFile(real, []byte(whole), 0o640), os.Chmod(real, 0o640)); err != nil { // umask
		t.Fatal(err)
	}
	link := filepath.Join(dir, "wasmgate.lock")
	if err := os.Symlink(real, link); err != nil {
		t.Skip("no links here: ", err)
	}
	added, err := lock.Approve(link, append(wholePins(), pin(lock.Tool, "new", "x", 'a')))
	if err != nil || len(added) != 1 || added[0].Server != "new" {
		t.Fatalf("added %v: %v", added, err)
	}
	info, err := os.Lstat(real)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	b, err := os.ReadFile(real)
	if err != nil || !strings.Contains(string(b), "# the new version\ntool files read_file") || !strings.Contains(string(b), "tool new x\n") {
		t.Errorf("wrote %s: %v", b, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
}

func TestApproveRefusesABrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wasmgate.lock")
	const broken = "wasmgate-lock 1\n<<<<<<< HEAD\n"
	if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Approve(path, []lock.Pin{pin(lock.Tool, "a", "b", 'a')}); err == nil || !strings.Contains(err.Error(), path+":2: ") {
		t.Errorf("err = %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != broken {
		t.Errorf("the file was changed to %s", b)
	}
}
