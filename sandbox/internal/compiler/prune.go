package compiler

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// maxKept is how many bytes of machine code a folder keeps, maxAge for how long one
	// that is not used.
	maxKept = 2 << 30
	maxAge  = 30 * 24 * time.Hour
	// another process is given grace to finish what it has begun.
	grace = time.Hour
)

// tidy counts an entry that was added, if any, by its size. It looks at all entries from time to
// time.
func (c *Cache) tidy(now time.Time, size int64) {
	if c.added += size; now.Sub(c.tidied) > maxAge/30 || c.added > c.kept/8 {
		c.prune(now)
		c.tidied, c.added = now, 0
	}
}

// prune removes what was not used for long, what is too much, and what nothing names.
// Errors leave the rest to the next time.
func (c *Cache) prune(now time.Time) {
	notes, _ := filepath.Glob(filepath.Join(c.dir, "*"+noteSuffix))
	type held struct {
		note
		file string
		used time.Time
	}
	var all []held
	for _, file := range notes {
		k := held{file: file}
		b, err := os.ReadFile(file)
		info, serr := os.Stat(file)
		if errors.Join(err, serr, json.Unmarshal(b, &k.note)) != nil {
			c.forget(file)
			continue
		}
		k.used = info.ModTime()
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b held) int { return b.used.Compare(a.used) }) // the last used first
	var size int64
	named := map[string]bool{}
	for i, k := range all {
		entry := filepath.Join(c.dir, k.Entry)
		if !named[entry] { // by another note, too
			size += k.Size
		}
		if info, err := os.Stat(beside(k.file)); err == nil {
			size += info.Size()
		}
		if now.Sub(k.used) > maxAge || i > 0 && size > c.kept {
			c.forget(k.file) // first: an entry without a note is not read
			continue
		}
		named[entry] = true
	}
	c.sweep(now, named)
}

// forget removes a note, and what was kept next to it.
func (c *Cache) forget(file string) {
	_ = os.Remove(file)
	_ = os.Remove(beside(file))
}

// beside returns the path of what is kept next to a note.
func beside(file string) string { return strings.TrimSuffix(file, noteSuffix) + keptSuffix }

// sweep removes what nothing names, and what a process has left that was killed.
func (c *Cache) sweep(now time.Time, named map[string]bool) {
	old := func(e fs.DirEntry) bool {
		info, err := e.Info()
		return err == nil && now.Sub(info.ModTime()) > grace
	}
	files, _ := os.ReadDir(c.dir)
	for _, f := range files {
		path := filepath.Join(c.dir, f.Name())
		switch {
		case strings.HasSuffix(f.Name(), keptSuffix) && old(f):
			if _, err := os.Lstat(strings.TrimSuffix(path, keptSuffix) + noteSuffix); errors.Is(err, fs.ErrNotExist) {
				_ = os.Remove(path)
			}
		case strings.HasPrefix(f.Name(), workPrefix) && old(f):
			_ = os.RemoveAll(path)
		case strings.HasPrefix(f.Name(), enginePrefix):
			entries, _ := os.ReadDir(path)
			for _, e := range entries {
				if file := filepath.Join(path, e.Name()); !named[file] && old(e) {
					_ = os.Remove(file)
				}
			}
		}
	}
}
