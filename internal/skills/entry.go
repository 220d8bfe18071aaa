package skills

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// Extension is the name by which servers declare that they have skills.
	Extension = "io.modelcontextprotocol/skills"
	// File is the file of each skill that holds its instructions.
	File = "SKILL.md"
	// MetaOrigin is the member of an entry's _meta that says whose skill it is.
	MetaOrigin = "io.github.wasmgate/origin"
)

// The limits of one skill.
const (
	MaxFiles       = 512
	MaxSize        = 16 << 20 // of all files, in bytes
	maxFrontmatter = 64 << 10
	maxURI         = 1024
)

// Offers reports whether a server with such capabilities has skills.
func Offers(capabilities doc.Doc) bool {
	return capabilities.Get("extensions").Get(Extension).Kind() == doc.Object
}

var (
	uriPattern = regexp.MustCompile(`^([a-z][a-z0-9+.-]*)://([^/?#]+(?:/[^?#]*)?)$`)
	namePart   = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	digest     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	encoded    = regexp.MustCompile(`(?i)%(2e|2f|5c)`)
)

// foreign are the schemes by which a URI leads somewhere else than to its server.
var foreign = []string{"about", "blob", "data", "file", "ftp", "http", "https", "javascript", "ui", "wasmgate", "ws", "wss"}

// split returns the scheme of a URI and what follows it, or why no skill can have it.
func split(uri string) (scheme, rest string, err error) {
	m := uriPattern.FindStringSubmatch(uri)
	switch {
	case m == nil || len(uri) > maxURI:
		return "", "", errors.New("it is not SCHEME://PATH with a scheme in lower case")
	case slices.Contains(foreign, m[1]):
		return "", "", fmt.Errorf("the scheme %s does not lead to a server of skills", m[1])
	}
	return m[1], m[2], CheckPath(m[2])
}

// CheckPath returns why a path is not one below a folder: segments of visible characters, none
// of them empty or made of dots.
func CheckPath(p string) error {
	switch {
	case encoded.MatchString(p) || strings.ContainsRune(p, '\\'):
		return errors.New("it holds an encoded dot, slash or backslash")
	case strings.ContainsFunc(p, func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' ' || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
	}):
		return errors.New("it holds a hidden character")
	}
	for segment := range strings.SplitSeq(p, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return errors.New("it holds an empty segment or one of dots")
		}
	}
	return nil
}

// OfferedURI returns the URI by which clients know what has a URI at a server. The server comes
// first, so that the origin is in what hosts show and record, and relative references resolve.
func OfferedURI(server, uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	return scheme + "://" + server + "/" + rest
}

// Root returns the folder of a skill, with the slash at its end, of the URI of its SKILL.md.
func Root(uri string) string { return strings.TrimSuffix(uri, File) }

// specified are the members of a frontmatter that describe a skill and ask for nothing.
var specified = []string{"name", "description", "license", "compatibility", "metadata"}

// Parse reads an entry of skills/list. The error says why the skill cannot be offered.
func Parse(server string, entry doc.Doc) (*gate.Skill, error) {
	uri := entry.Get("uri").Text()
	scheme, rest, err := split(uri)
	if err != nil {
		return nil, fmt.Errorf("its URI: %w", err)
	}
	folder, ok := strings.CutSuffix(rest, "/"+File)
	if !ok {
		return nil, fmt.Errorf("its URI does not end with /%s", File)
	}
	front := entry.Get("frontmatter")
	if err := checkFrontmatter(front, path.Base(folder)); err != nil {
		return nil, err
	}
	s := &gate.Skill{Name: server + "/" + folder, URI: uri}
	for name := range front.Members() {
		if !slices.Contains(specified, name) {
			s.Widens = append(s.Widens, name)
		}
	}
	slices.Sort(s.Widens)
	files := entry.Get("resources")
	if files.Text() == "dynamic" {
		s.Dynamic = true
	} else if s.Files, s.Size, err = parseFiles(scheme+"://"+folder+"/", files); err != nil {
		return nil, err
	}
	s.Entry, err = newEntry(server, s, front, func(uri string) string { return uri })
	return s, err
}

func checkFrontmatter(front doc.Doc, folder string) error {
	name := front.Get("name").Text()
	switch {
	case front.Kind() != doc.Object:
		return errors.New("it has no frontmatter")
	case front.Get("name").IsZero():
		return fmt.Errorf("its frontmatter has no name: %s must begin with a line ---, YAML with name and description, and a line ---", File)
	case len(front.Raw()) > maxFrontmatter:
		return fmt.Errorf("its frontmatter has more than %d KiB", maxFrontmatter>>10)
	case len(name) > 64 || !namePart.MatchString(name):
		return fmt.Errorf("its name %.80q is not one of lower-case letters, digits and single hyphens", name)
	case folder != name:
		return fmt.Errorf("its name is %s, and its folder is %.80q", name, folder)
	case strings.TrimSpace(front.Get("description").Text()) == "":
		return errors.New("it has no description")
	}
	var bad error
	_, err := doc.MapStrings(front, func(at doc.Leaf, s string) string {
		if found := hidden(s); found != "" && bad == nil {
			bad = fmt.Errorf("hidden text (%s) in its frontmatter, at %s", found, at.Pointer())
		}
		return s
	})
	return errors.Join(bad, err)
}

// parseFiles reads the files of an entry, which must all be below a folder.
func parseFiles(root string, list doc.Doc) (map[string]gate.SkillFile, int64, error) {
	if list.Kind() != doc.Array {
		return nil, 0, errors.New("it has no list of its files")
	}
	files, size := make(map[string]gate.SkillFile), int64(0)
	folded := make(map[string]bool) // names that are one on some disks
	for one := range list.Elements() {
		uri := one.Get("uri").Text()
		p, below := strings.CutPrefix(uri, root)
		if err := CheckPath(p); !below || err != nil || strings.ContainsAny(p, "?#") || len(uri) > maxURI {
			return nil, 0, fmt.Errorf("the file %.200q is not below its folder", uri)
		}
		n, err := strconv.ParseInt(one.Get("size").String(), 10, 64)
		switch {
		case err != nil || n < 0:
			return nil, 0, fmt.Errorf("no size of %s", p)
		case !digest.MatchString(one.Get("digest").Text()):
			return nil, 0, fmt.Errorf("no digest of %s: it must be sha256: and 64 lower-case hexadecimal digits", p)
		case len(files) == MaxFiles:
			return nil, 0, fmt.Errorf("it has more than %d files", MaxFiles)
		case n > MaxSize-size:
			return nil, 0, fmt.Errorf("its files have more than %d MiB together", MaxSize>>20)
		case folded[fold(p)]:
			return nil, 0, fmt.Errorf("the file %s has the name of another one on some disks", p)
		}
		folded[fold(p)], size = true, size+n
		files[p] = gate.SkillFile{Digest: one.Get("digest").Text(), Size: n}
	}
	if _, ok := files[File]; !ok {
		return nil, 0, fmt.Errorf("%s is not among its files", File)
	}
	for p := range files {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if folded[fold(dir)] {
				return nil, 0, fmt.Errorf("%s is both a file and a folder", dir)
			}
		}
	}
	return files, size, nil
}

// fold returns what is equal of paths that some disks take for one.
func fold(p string) string {
	if plain, err := url.PathUnescape(p); err == nil {
		p = plain
	}
	return norm.NFC.String(cases.Fold().String(norm.NFKC.String(p)))
}

// Offered returns the entry of a skill as clients know it.
func Offered(server string, s *gate.Skill) (doc.Doc, error) {
	return newEntry(server, s, s.Entry.Get("frontmatter"), func(uri string) string { return OfferedURI(server, uri) })
}

// newEntry writes an entry. The frontmatter stays as it was written, because hosts compare it
// with that of the file.
func newEntry(server string, s *gate.Skill, front doc.Doc, known func(string) string) (doc.Doc, error) {
	type file struct {
		URI    string `json:"uri"`
		Digest string `json:"digest"`
		Size   int64  `json:"size"`
	}
	type origin struct {
		Server string `json:"server"`
		URI    string `json:"uri"`
	}
	out := struct {
		URI         string            `json:"uri"`
		Frontmatter json.RawMessage   `json:"frontmatter"`
		Resources   any               `json:"resources"`
		Meta        map[string]origin `json:"_meta"`
	}{known(s.URI), front.Raw(), "dynamic", map[string]origin{MetaOrigin: {server, s.URI}}}
	if !s.Dynamic {
		var files []file
		for _, p := range Paths(s) {
			files = append(files, file{known(Root(s.URI) + p), s.Files[p].Digest, s.Files[p].Size})
		}
		out.Resources = files
	}
	return marshalled(out)
}

func marshalled(v any) (doc.Doc, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return doc.Doc{}, err
	}
	return doc.Parse(b)
}

// Paths returns the paths of the files of a skill: SKILL.md first, and then the others in order.
func Paths(s *gate.Skill) []string {
	all := make([]string, 0, len(s.Files))
	for p := range s.Files {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b string) int {
		if a == File || b == File {
			return map[bool]int{true: -1, false: 1}[a == File]
		}
		return strings.Compare(a, b)
	})
	return all
}

// Pinned returns what a person approves of a skill: its URI, its frontmatter, the digest of each
// file, and the text of its SKILL.md, so that a change of it can be shown.
func Pinned(s *gate.Skill, text string) (doc.Doc, error) {
	pinned := map[string]any{"uri": s.URI, "frontmatter": json.RawMessage(s.Entry.Get("frontmatter").Raw()), "files": "dynamic"}
	if !s.Dynamic {
		files := make(map[string]string, len(s.Files))
		for p, f := range s.Files {
			files[p] = fmt.Sprintf("%s %d", f.Digest, f.Size)
		}
		pinned["files"], pinned["instructions"] = files, text
	}
	return marshalled(pinned)
}

// Directory returns the answer to resources/directory/read: what is in a folder of a skill, under
// the URIs by which clients know it. It is made of the entry, so that it leads nowhere else. It is
// false if the skill has no such folder.
func Directory(s *gate.Skill, uri, below string) (doc.Doc, bool) {
	type child struct {
		URI  string `json:"uri"`
		Name string `json:"name"`
		MIME string `json:"mimeType,omitempty"`
	}
	children, seen := []child{}, make(map[string]bool)
	for _, p := range Paths(s) {
		if below != "" {
			rest, ok := strings.CutPrefix(p, below+"/")
			if !ok {
				continue
			}
			p = rest
		}
		name, _, folder := strings.Cut(p, "/")
		if seen[name] {
			continue
		}
		seen[name] = true
		c := child{URI: uri + "/" + name, Name: name}
		switch {
		case folder:
			c.MIME = "inode/directory"
		case path.Ext(name) == ".md":
			c.MIME = "text/markdown"
		}
		children = append(children, c)
	}
	answer, err := marshalled(map[string]any{"resources": children})
	return answer, err == nil && len(children) > 0
}
