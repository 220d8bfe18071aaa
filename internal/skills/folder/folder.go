package folder

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/internal/skills"
)

// scheme begins the URIs of skills and of their files.
const scheme = "skill://"

// maxWalked bounds the files that are looked at. More than that is no folder of skills.
const maxWalked = 100_000

// An entry is one of skills/list.
type entry struct {
	URI         string         `json:"uri"`
	Frontmatter map[string]any `json:"frontmatter"`
	Resources   []file         `json:"resources"`
}

type file struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// A folder is one that is served. Links in it that lead out are not followed.
type folder struct {
	root  *os.Root
	paths map[string]string // of files, by URI
}

// uriOf returns the URI of a path below the folder.
func uriOf(p string) string {
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return scheme + strings.Join(segments, "/")
}

// files returns the paths of all files, with what tells whether they have changed. Those that begin
// with a dot, and all below such folders, are left out.
func (f *folder) files() (all []string, state string, err error) {
	var b strings.Builder
	err = fs.WalkDir(f.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case len(all) == maxWalked:
			return fmt.Errorf("it has more than %d files", maxWalked)
		}
		info, err := f.root.Stat(p) // follows a link that stays inside
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		all = append(all, p)
		fmt.Fprintf(&b, "%s %d %d\n", p, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return all, b.String(), err
}

// list returns the skills: all folders with a SKILL.md.
func (f *folder) list() ([]entry, error) {
	all, _, err := f.files()
	if err != nil {
		return nil, err
	}
	f.knows(all)
	list, digests := []entry{}, make(map[string]string)
	for _, p := range all {
		dir := path.Dir(p)
		if path.Base(p) != skills.File || dir == "." {
			continue
		}
		e := entry{URI: uriOf(p), Frontmatter: map[string]any{}}
		for _, one := range all {
			if !strings.HasPrefix(one, dir+"/") {
				continue
			}
			info, err := f.root.Stat(one)
			if err != nil {
				continue // it was removed meanwhile
			}
			if digests[one] == "" {
				digests[one] = f.digest(one, info.Size())
			}
			e.Resources = append(e.Resources, file{uriOf(one), digests[one], info.Size()})
		}
		if text, err := f.root.ReadFile(p); err == nil {
			if front, err := skills.ReadFrontmatter(string(text)); err == nil { // else the gateway says what is wrong
				e.Frontmatter = front
			}
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.URI, b.URI) })
	return list, nil
}

// know has the folder know its files by their URIs.
func (f *folder) know() error {
	all, _, err := f.files()
	f.knows(all)
	return err
}

func (f *folder) knows(all []string) {
	f.paths = make(map[string]string, len(all))
	for _, p := range all {
		f.paths[uriOf(p)] = p
	}
}

// digest returns that of a file; "" of one that no skill can have.
func (f *folder) digest(p string, size int64) string {
	if size > skills.MaxSize {
		return ""
	}
	b, err := f.root.ReadFile(p)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(b))
}

// read returns the content of a file as resources/read has it.
func (f *folder) read(uri string) (map[string]string, error) {
	if f.paths[uri] == "" { // this client has not listed
		if err := f.know(); err != nil {
			return nil, err
		}
	}
	p, ok := f.paths[uri]
	if !ok {
		return nil, fmt.Errorf("no file of a skill: %.200q", uri)
	}
	info, err := f.root.Stat(p)
	if err == nil && info.Size() > skills.MaxSize {
		err = fmt.Errorf("%s has more than %d bytes", p, skills.MaxSize)
	}
	var b []byte
	if err == nil {
		b, err = f.root.ReadFile(p)
	}
	if err != nil {
		return nil, err
	}
	content := map[string]string{"uri": uri}
	if path.Ext(p) == ".md" {
		content["mimeType"] = "text/markdown"
	}
	if utf8.Valid(b) && !bytes.ContainsRune(b, 0) {
		content["text"] = string(b)
	} else {
		content["blob"] = base64.StdEncoding.EncodeToString(b)
	}
	return content, nil
}
