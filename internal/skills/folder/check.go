package folder

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/skills"
)

// A Checked is a skill in a folder, and why it could not be offered.
type Checked struct {
	Name    string   `json:"name"` // its path below the folder
	Refused string   `json:"refused,omitempty"`
	Files   int      `json:"files"`
	Size    int64    `json:"size"` // of all files, in bytes
	Notes   []string `json:"notes,omitempty"`
}

// Check looks through the skills in a folder as a gateway does that serves it.
func Check(dir string) ([]Checked, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f := folder{root: root}
	entries, err := f.list()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	all := []Checked{}
	for _, e := range entries {
		one := Checked{Name: strings.TrimSuffix(f.paths[e.URI], "/"+skills.File)}
		if err := f.check(e, &one); err != nil {
			one.Refused = err.Error()
		}
		all = append(all, one)
	}
	return all, nil
}

// check fills in what is found in a skill. The error says why it could not be offered.
func (f *folder) check(e entry, one *Checked) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	d, err := gate.ParseDoc(b)
	if err != nil {
		return err
	}
	s, err := skills.Parse("folder", d)
	if err != nil {
		return err
	}
	one.Files, one.Size = len(s.Files), s.Size
	v, err := skills.Examine(s, func(p string, _ gate.SkillFile) ([]byte, error) {
		return f.root.ReadFile(f.paths[skills.Root(s.URI)+p])
	})
	for _, w := range s.Widens {
		one.Notes = append(one.Notes, "the frontmatter asks for "+w)
	}
	one.Refused, one.Notes = v.Refused, append(one.Notes, v.Notes...)
	return err
}
