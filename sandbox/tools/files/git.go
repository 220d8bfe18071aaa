package files

import (
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The kinds of working trees; gitrepository-layout(5) describes them.
const (
	kindMain     = "main"     // .git is the git directory
	kindWorktree = "worktree" // .git is a file that names a directory in worktrees/ of another git directory
	kindSeparate = "separate" // .git is a file that names a git directory
)

// maxFile bounds the files that are read, in bytes: each holds one path or
// the name of one ref.
const maxFile = 4096

// A head says what is checked out; both fields are empty if that is not known.
type head struct {
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// inspect reports whether dir is the top of a working tree. As git does, it
// takes a git directory without HEAD for none.
func (s *scan) inspect(dir string) (repository, bool) {
	r := repository{Path: dir, Kind: kindMain, Reachable: reachableYes}
	git := filepath.Join(dir, ".git")
	info, err := os.Lstat(git)
	if err != nil {
		return r, false
	}
	if !info.IsDir() {
		named, ok := readGitFile(git)
		if !ok {
			return r, false
		}
		git = named
		r.Kind, r.Main = linkedTo(git)
		switch s.reach(git) {
		case reachableNo:
			return r, false
		case reachableUnknown:
			return r, true
		}
	}
	var ok bool
	r.head, ok = readHead(git)
	return r, ok
}

// addWorktrees adds the linked worktrees that a main repository names.
func (s *scan) addWorktrees(main repository) {
	names := filepath.Join(main.Path, ".git", "worktrees")
	if s.reach(names) != reachableYes { // most repositories have none
		return
	}
	for _, name := range s.subdirectories(names) {
		git := filepath.Join(names, name)
		if s.full {
			return
		}
		if !s.enter(git) {
			continue
		}
		if r, ok := s.linked(git, main.Path); ok {
			s.add(r)
		}
	}
}

// linked returns the worktree whose git directory is given. One that can be
// looked at speaks for itself, so that it is described as a walk to it would.
func (s *scan) linked(git, main string) (repository, bool) {
	text, _ := readSmall(filepath.Join(git, "gitdir"))
	file, ok := namedPath(text, git)
	if !ok || filepath.Base(file) != ".git" {
		return repository{}, false
	}
	dir := filepath.Dir(file)
	switch s.reach(dir) {
	case reachableNo:
		return repository{}, false
	case reachableYes:
		r, ok := s.inspect(dir)
		return r, ok && r.Kind == kindWorktree
	}
	r := repository{Path: dir, Kind: kindWorktree, Reachable: reachableUnknown, Main: main}
	r.head, _ = readHead(git)
	return r, true
}

// linkedTo returns the kind of a working tree whose .git file names the
// directory git, and the repository to which a worktree is linked.
func linkedTo(git string) (kind, main string) {
	worktrees := filepath.Dir(git)
	if filepath.Base(worktrees) != "worktrees" {
		return kindSeparate, ""
	}
	main = filepath.Dir(worktrees)
	if filepath.Base(main) == ".git" { // else it is bare, or a submodule's
		main = filepath.Dir(main)
	}
	return kindWorktree, main
}

// readGitFile returns the git directory that a .git file names.
func readGitFile(file string) (string, bool) {
	text, _ := readSmall(file)
	text, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return "", false
	}
	return namedPath(text, filepath.Dir(file))
}

// readHead reads HEAD in a git directory; ok says that there is one.
func readHead(git string) (h head, ok bool) {
	file := filepath.Join(git, "HEAD")
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return head{}, false
	}
	text, _ := readSmall(file)
	text = strings.TrimRight(text, "\r\n")
	if !plain(text) {
		return head{}, true
	}
	if ref, ok := strings.CutPrefix(text, "ref: "); ok {
		ref = strings.TrimPrefix(strings.TrimLeft(ref, " "), "refs/heads/")
		if ref == ".invalid" { // is there for old versions of git if refs are kept in a reftable
			ref = ""
		}
		return head{Branch: ref}, true
	}
	if id, err := hex.DecodeString(text); err == nil && (len(id) == 20 || len(id) == 32) { // SHA-1, SHA-256
		return head{Commit: text}, true
	}
	return head{}, true
}

// namedPath returns the path in one of git's files; a relative one begins at base.
func namedPath(text, base string) (string, bool) {
	text = strings.TrimRight(text, "\r\n")
	if !plain(text) {
		return "", false
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(base, text)
	}
	text = filepath.Clean(text)
	return text, len(text) <= maxPath
}

// plain reports whether text is fit for a path or a ref.
func plain(text string) bool {
	return text != "" && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// readSmall returns the content of a regular file of at most maxFile bytes.
// Others are not opened: opening a named pipe would wait for its writer.
func readSmall(file string) (string, bool) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return "", false
	}
	f, err := os.Open(file)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1)) // it may have grown
	if err != nil || len(b) > maxFile {
		return "", false
	}
	return string(b), true
}
