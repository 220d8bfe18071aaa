package folder

import (
	"os"
	"path/filepath"
)

// Walk gives f each file below root that is not stray, by its name from root on, in order. Root
// may be a file, or a link; its own name is the user's choice and is never stray. A link to a
// folder is left out, so that there is no circle, unless the folder is below a stray one in root:
// that is how Kubernetes lays out the folders of a ConfigMap.
func Walk(root string, f func(path string, err error) error) error {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return f(root, err)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return f(root, err)
	}
	w := walker{real: real, f: f, seen: map[string]bool{real: true}}
	return w.walk(real, root)
}

type walker struct {
	real string // root, without links
	f    func(path string, err error) error
	seen map[string]bool // folders that links have led to
}

// walk visits a folder, which is shown by the name.
func (w *walker) walk(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return w.f(name, err)
	}
	for _, e := range entries {
		if Stray(e.Name()) {
			continue
		}
		path, shown := filepath.Join(dir, e.Name()), filepath.Join(name, e.Name())
		switch info, err := os.Stat(path); {
		case err != nil || !info.IsDir():
			err = w.f(shown, err)
			if err != nil {
				return err
			}
			continue
		case e.Type()&os.ModeSymlink != 0:
			if path, err = filepath.EvalSymlinks(path); err != nil || !w.below(path) || w.seen[path] {
				continue
			}
			w.seen[path] = true
		}
		if err := w.walk(path, shown); err != nil {
			return err
		}
	}
	return nil
}

// below reports whether a folder is below a stray one in root.
func (w *walker) below(path string) bool {
	rel, err := filepath.Rel(w.real, path)
	return err == nil && filepath.IsLocal(rel) && StrayPath(filepath.ToSlash(rel))
}
