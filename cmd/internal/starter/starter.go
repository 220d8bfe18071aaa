package starter

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed all:templates
var templates embed.FS

const (
	root       = "templates"
	suffix     = ".tmpl"
	templateID = "word-count" // what the templates call the module in wasmgate.yaml, where no name has underscores
	maxName    = 64           // bytes; a tool's name may have 128, and its file's name adds an ending

	templateName = "word_count" // what they call the project and its tool
)

// Languages returns the names of the languages that there are starters for, in
// alphabetical order. Each has a folder of templates.
func Languages() []string {
	return []string{"assemblyscript", "c", "go", "javascript", "python", "rust", "zig"}
}

// Write writes the starter project of a language to dir, which it makes if need
// be, and returns the files that it wrote, with slashes and relative to dir. The
// project and its tool are named after dir: lower case, and an underscore for
// whatever is not a letter of ASCII or a digit.
//
// It is an error if there is no starter for the language, or if dir holds
// anything. Files that exist are never written to, and what was written is
// removed if the project does not become complete.
func Write(language, dir string) (files []string, err error) {
	if !slices.Contains(Languages(), language) {
		return nil, fmt.Errorf("starter: there is no starter for %q: choose one of %s", language, strings.Join(Languages(), ", "))
	}
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("starter: find the folder %s: %w", dir, err)
	}
	if err := checkEmpty(at); err != nil {
		return nil, err
	}
	project, err := render(language, projectName(at))
	if err != nil {
		return nil, err
	}
	w := writer{dir: at}
	for _, f := range project {
		if err := w.write(f); err != nil {
			return nil, errors.Join(fmt.Errorf("starter: write %s: %w", f.name, err), w.undo())
		}
		files = append(files, f.name)
	}
	return files, nil
}

// checkEmpty refuses a path at which something is that could be lost.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("starter: look into the folder: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("starter: %s is not empty, it holds %s: name a new folder", dir, entries[0].Name())
	}
	return nil
}

// projectName makes of a folder's name one that every toolchain takes as a name.
func projectName(dir string) string {
	words := strings.FieldsFunc(strings.ToLower(filepath.Base(dir)), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
	name := strings.Join(words, "_")
	if name == "" || name[0] <= '9' {
		name = strings.TrimSuffix("tool_"+name, "_")
	}
	return strings.TrimSuffix(name[:min(len(name), maxName)], "_")
}

// A file is one of a project.
type file struct {
	name string // with slashes, relative to the project's folder
	data []byte
}

// render returns the files of the project, in the order of their names.
func render(language, name string) ([]file, error) {
	var files []file
	rename := strings.NewReplacer(templateName, name, templateID, strings.ReplaceAll(name, "_", "-")).Replace
	folder := path.Join(root, language)
	err := fs.WalkDir(templates, folder, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := templates.ReadFile(at)
		if err != nil {
			return err
		}
		relative := strings.TrimSuffix(strings.TrimPrefix(at, folder+"/"), suffix)
		files = append(files, file{name: rename(relative), data: []byte(rename(string(data)))})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("starter: read the templates for %s: %w", language, err)
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// A writer writes files below dir, and remembers what it made.
type writer struct {
	dir  string
	made []string // files and folders, in the order of their making
}

func (w *writer) write(f file) error {
	at := filepath.Join(w.dir, filepath.FromSlash(f.name))
	if err := w.mkdir(filepath.Dir(at)); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if strings.HasSuffix(at, ".sh") {
		mode = 0o755
	}
	to, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) // never into a file that is there
	if err != nil {
		return err
	}
	w.made = append(w.made, at)
	_, err = to.Write(f.data)
	return errors.Join(err, to.Close())
}

// mkdir makes a folder and, before it, those that it is in.
func (w *writer) mkdir(at string) error {
	err := os.Mkdir(at, 0o755)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(at) != at {
		if err := w.mkdir(filepath.Dir(at)); err != nil {
			return err
		}
		err = os.Mkdir(at, 0o755)
	}
	switch {
	case err == nil:
		w.made = append(w.made, at)
	case errors.Is(err, fs.ErrExist): // if it is not a folder, the next write into it fails
		return nil
	}
	return err
}

// undo removes what was made, the last first.
func (w *writer) undo() error {
	var errs []error
	for _, at := range slices.Backward(w.made) {
		errs = append(errs, os.Remove(at))
	}
	return errors.Join(errs...)
}
