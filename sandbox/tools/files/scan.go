package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxDirs bounds the directories that one call looks into, and with
	// maxPath the memory that their names take: 10 MB.
	maxDirs = 10_000
	// maxPath is the length in bytes from which on paths are not searched; it
	// is the longest that macOS opens.
	maxPath = 1024
	// maxEntries bounds the names that one call reads from directories.
	maxEntries = 200_000
	// batch is how many entries of a directory are read at once.
	batch = 512
)

// How a directory that a file names can be reached.
const (
	reachableYes     = "yes"
	reachableUnknown = "unknown" // in no granted directory, behind a symbolic link, or not to be read
	reachableNo      = "no"      // not there
)

// A scan is the state of one call.
type scan struct {
	roots      []string
	within     []string // directories in which it looks at what a file names
	limit      int
	entered    map[string]bool // directories looked into, or about to be
	entries    int
	found      map[string]repository // by path
	unreadable int
	truncated  bool
	full       bool // as many are found as may be returned, and there is one more
}

// walk searches the roots breadth first: when a bound is reached, what lies
// near the roots has been found.
func (s *scan) walk(depth int) {
	level := slices.DeleteFunc(slices.Clone(s.roots), func(root string) bool { return !s.enter(root) })
	for ; len(level) > 0; depth-- {
		if depth < 0 {
			s.truncated = true
			return
		}
		var next []string
		for _, dir := range level {
			if s.full {
				return
			}
			next = append(next, s.visit(dir)...)
		}
		level = next
	}
}

// visit looks at one directory and returns those below it that are to be
// searched: none if it is a repository.
func (s *scan) visit(dir string) []string {
	if r, ok := s.inspect(dir); ok {
		s.add(r)
		if r.Kind == kindMain {
			s.addWorktrees(r)
		}
		return nil
	}
	var below []string
	for _, name := range s.subdirectories(dir) {
		if strings.HasPrefix(name, ".") || name == "node_modules" {
			continue
		}
		if sub := filepath.Join(dir, name); s.enter(sub) {
			below = append(below, sub)
		}
	}
	return below
}

// enter reports whether dir may be looked into: it was not before, and there
// is room for it.
func (s *scan) enter(dir string) bool {
	if s.entered[dir] {
		return false
	}
	if len(s.entered) >= maxDirs || len(dir) > maxPath {
		s.truncated = true
		return false
	}
	s.entered[dir] = true
	return true
}

// add keeps r, unless its path is known already.
func (s *scan) add(r repository) {
	if _, ok := s.found[r.Path]; ok {
		return
	}
	if len(s.found) >= s.limit {
		s.full, s.truncated = true, true
		return
	}
	s.found[r.Path] = r
}

// subdirectories returns the names of the directories in dir, sorted. A
// directory that cannot be read is counted.
func (s *scan) subdirectories(dir string) []string {
	left := maxEntries - s.entries
	if left <= 0 {
		s.truncated = true
		return nil
	}
	names, read, err := readDirectories(dir, left)
	s.entries += read
	s.truncated = s.truncated || read == left
	if err != nil {
		s.unreadable++
	}
	slices.Sort(names)
	return names
}

// readDirectories reads at most limit entries of dir and returns the names of
// those that are directories, and how many were read.
func readDirectories(dir string, limit int) (names []string, read int, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	for read < limit {
		entries, err := f.ReadDir(min(batch, limit-read))
		for _, e := range entries {
			if e.IsDir() { // a symbolic link is none
				names = append(names, e.Name())
			}
		}
		read += len(entries)
		if err == io.EOF {
			break
		}
		if err != nil {
			return names, read, err
		}
	}
	return names, read, nil
}

// reach finds out whether there is a directory at a path that a file names. It
// looks only in granted directories, and through no symbolic link.
func (s *scan) reach(dir string) string {
	at := ""
	for _, root := range s.within {
		if len(root) > len(at) && below(root, dir) { // a root may lie in another, behind a link of that one
			at = root
		}
	}
	if at == "" {
		return reachableUnknown
	}
	for _, name := range strings.FieldsFunc(dir[len(at):], separator) {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return reachableNo
		case err != nil || info.Mode().Type() == fs.ModeSymlink:
			return reachableUnknown
		case !info.IsDir():
			return reachableNo
		}
	}
	return reachableYes
}

// below reports whether path, which is clean, is root or lies below it.
func below(root, path string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(root[len(root)-1]))
}

func separator(c rune) bool { return c < utf8.RuneSelf && os.IsPathSeparator(uint8(c)) }
