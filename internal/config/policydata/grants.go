package policydata

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/match"
)

// A Grant is one entry of a grants file: the principals, and what they may use. A pattern is a literal,
// or a literal with * at its end.
type Grant struct {
	To        []string // ids of principals, role:NAME, or *
	Tools     []string // patterns of tools' names
	Servers   []string // whose tools are all granted
	Groups    []string // all in which is granted
	Except    []string // patterns of names that this entry does not grant
	Always    []string // patterns of tools' names about which the pack approve does not ask
	Resources []string // patterns of URIs
	Prompts   []string // patterns of prompts' names
	Skills    []string // patterns of skills, SERVER/PATH
	Methods   []string // patterns of methods that MCP does not have
	Agents    []string // patterns of agents' own tools
	Asks      []string // what servers may ask of the client: roots, sampling, secrets
}

// grantKey is a key of an entry, and its value.
type grantKey struct {
	key    string
	values *[]string
}

// keys returns the keys of an entry, in the order in which they are written.
func (g *Grant) keys() []grantKey {
	return []grantKey{
		{"to", &g.To}, {"tools", &g.Tools}, {"servers", &g.Servers}, {"groups", &g.Groups}, {"except", &g.Except}, {"always", &g.Always},
		{"resources", &g.Resources}, {"prompts", &g.Prompts}, {"skills", &g.Skills}, {"methods", &g.Methods}, {"agents", &g.Agents}, {"asks", &g.Asks},
	}
}

// ReadGrants reads a grants file. One that does not exist holds no grants. The
// error is a [tree.Problems] with everything that is wrong with it.
func ReadGrants(path string) ([]Grant, error) {
	data, err := tree.ReadEntries(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read grants: %w", err)
	}
	return ParseGrants(path, data)
}

// ParseGrants is [ReadGrants] of bytes that the caller has.
func ParseGrants(path string, data []byte) ([]Grant, error) {
	grants, _, err := parseGrants(path, data)
	return grants, err
}

// ErrGrantsChanged says that a grants file is not what it was when it was seen.
var ErrGrantsChanged = errors.New("the grants were changed after you loaded them: look again")

// GrantsName is the name of the document with the grants that gateways share.
const GrantsName = "grants"

// GrantsFile is a grants file as a document, whose generation says nothing.
type GrantsFile string

// Name is the path of the file.
func (f GrantsFile) Name() string { return string(f) }

// Load implements [state.Document].
func (f GrantsFile) Load(context.Context, uint64) ([]byte, uint64, error) {
	data, err := tree.ReadEntries(string(f))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("read grants: %w", err)
	}
	return data, 0, nil
}

// Change puts another file in place of the old one in one step. Of two processes that do so at once, one
// waits for the other.
func (f GrantsFile) Change(ctx context.Context, edit func(data []byte) ([]byte, error)) error {
	path := files.Canonical(string(f)) // not the link to it, if it is one
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unlock, err := files.LockBeside(path)
	if err != nil {
		return err
	}
	defer unlock()
	data, _, err := GrantsFile(path).Load(ctx, 0)
	if err != nil {
		return err
	}
	out, err := edit(data)
	if err != nil || bytes.Equal(out, data) {
		return err
	}
	return files.ReplaceSynced(path, out, files.Mode(path, 0o600)) // else only its owner reads it
}

// SeeGrants returns the grants of a document, with what names their state.
func SeeGrants(ctx context.Context, at state.Document) (grants []Grant, seen string, err error) {
	data, _, err := at.Load(ctx, 0)
	if err != nil {
		return nil, "", err
	}
	grants, err = ParseGrants(at.Name(), data)
	return grants, stateOf(data), err
}

func stateOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// SetGrants makes a document hold the grants of next, if it is still what was seen: others
// go, and new ones come last. Lines of those that stay are left alone. The error wraps
// [ErrGrantsChanged] if it is not.
func SetGrants(ctx context.Context, at state.Document, seen string, next []Grant) error {
	var text []byte
	for _, g := range next {
		text = append(text, renderGrant(g)...)
	}
	if _, _, err := parseGrants(at.Name(), text); err != nil {
		return err
	}
	return editGrantsOf(ctx, at, func(data []byte, e *editor) error {
		if stateOf(data) != seen {
			return ErrGrantsChanged
		}
		for i, g := range slices.Backward(e.grants) {
			if !slices.ContainsFunc(next, g.Equal) {
				e.replace(i, Grant{})
			}
		}
		for _, n := range next {
			if !slices.ContainsFunc(e.grants, n.Equal) {
				e.add(n)
			}
		}
		return nil
	})
}

// parseGrants also returns the line at which each grant begins.
func parseGrants(path string, data []byte) (grants []Grant, lines []int, err error) {
	f := &decode.File{Name: path, Keep: true}
	root, ok := f.Root(tree.ParseEntries(data))
	if !ok {
		return nil, nil, f.Problems.Err()
	}
	for v := range root.List() {
		var g Grant
		readers := make(map[string]decode.Reader)
		for _, k := range g.keys() {
			readers[k.key] = decode.Texts(k.values)
		}
		v.Table(readers)
		if v.Kind == tree.Table && len(g.To) == 0 {
			v.Under("to").Fail("is missing: name who gets it, such as [local], [\"role:dev\"] or [\"*\"]")
		}
		grants, lines = append(grants, g), append(lines, v.Line)
	}
	return grants, lines, f.Problems.Err()
}

// AddGrant adds a grant to a document. It returns false, and changes nothing, if one entry
// grants all of it already.
func AddGrant(ctx context.Context, at state.Document, g Grant) (added bool, err error) {
	err = editGrants(ctx, at, func(e *editor) {
		if !slices.ContainsFunc(e.grants, func(has Grant) bool { return has.grants(g) }) {
			added = true
			e.add(g)
		}
	})
	return added && err == nil, err
}

// grants reports whether one entry names all that another does, and withholds none of it.
func (g Grant) grants(other Grant) bool {
	named := other.keys()
	for i, k := range g.keys() {
		if k.key != "except" && slices.ContainsFunc(*named[i].values, func(v string) bool { return !slices.Contains(*k.values, v) }) {
			return false
		}
	}
	whole := make([]string, len(other.Servers))
	for i, server := range other.Servers {
		whole[i] = server + "__*"
	}
	return !slices.ContainsFunc(slices.Concat(other.Tools, other.Prompts, other.Resources, other.Methods, other.Agents, whole), g.excepts)
}

// AddAlways adds, for one principal or role, a grant of a tool with which calls of the tool need no
// further approval. It writes as [AddGrant] does.
func AddAlways(ctx context.Context, at state.Document, tool, to string) (added bool, err error) {
	return AddGrant(ctx, at, Grant{To: []string{to}, Tools: []string{tool}, Always: []string{tool}})
}

// Revoked says what [RevokeGrant] has done, in numbers of entries.
type Revoked struct {
	Removed  int // that named the pattern, and have lost it
	Excepted int // that cover it, and have it as an exception now
	Left     int // that cover it still
}

// RevokeGrant takes a tool pattern out of a document. Entries that name
// exactly the pattern lose it. If there are none, those whose patterns or
// servers cover it get it as an exception.
func RevokeGrant(ctx context.Context, at state.Document, pattern string) (r Revoked, err error) {
	err = editGrants(ctx, at, func(e *editor) {
		for i, g := range slices.Backward(e.grants) {
			tools, always := without(g.Tools, pattern), without(g.Always, pattern)
			if len(tools)+len(always) < len(g.Tools)+len(g.Always) {
				r.Removed++
				g.Tools, g.Always = tools, always
				e.replace(i, g)
			}
		}
		for i, g := range slices.Backward(e.grants) {
			switch {
			case !g.covers(pattern) || slices.Contains(g.Except, pattern):
			case r.Removed > 0:
				r.Left++
			default:
				r.Excepted++
				g.Except = append(slices.Clone(g.Except), pattern)
				e.replace(i, g)
			}
		}
	})
	if err != nil {
		return Revoked{}, err
	}
	return r, nil
}

// RevokeNamed takes names out of a document, each under the key of g that has it:
// servers, groups, resources, prompts, methods. Entries that name exactly that lose it.
// It returns how many did.
func RevokeNamed(ctx context.Context, at state.Document, g Grant) (removed int, err error) {
	err = editGrants(ctx, at, func(e *editor) {
		for i, entry := range slices.Backward(e.grants) {
			changed := false
			named := g.keys()
			for k, key := range entry.keys() {
				if key.key == "to" {
					continue // the principal does not matter
				}
				for _, v := range *named[k].values {
					if left := without(*key.values, v); len(left) < len(*key.values) {
						*key.values, changed = left, true
					}
				}
			}
			if changed {
				removed++
				e.replace(i, entry)
			}
		}
	})
	return removed, err
}

// without returns the patterns but one.
func without(patterns []string, one string) []string {
	at := slices.Index(patterns, one)
	if at < 0 {
		return patterns
	}
	return slices.Delete(slices.Clone(patterns), at, at+1)
}

// covers reports whether the grant names anything that the pattern matches. The content of groups is
// not known here, so that a grant of a group may cover anything.
func (g Grant) covers(pattern string) bool {
	server, _, _ := strings.Cut(pattern, "__")
	return slices.Contains(g.Servers, server) || overlaps(g.Tools, pattern) || len(g.Groups) > 0
}

// excepts reports whether the grant withholds anything that the pattern matches.
func (g Grant) excepts(pattern string) bool { return overlaps(g.Except, pattern) }

// overlaps reports whether some name matches both a pattern and one of the others.
func overlaps(others []string, with string) bool {
	return slices.ContainsFunc(others, func(other string) bool { return match.Pattern(other).Overlaps(match.Pattern(with)) })
}

// Empty reports whether nothing is granted.
func (g Grant) Empty() bool {
	return len(g.Tools)+len(g.Servers)+len(g.Groups)+len(g.Always)+len(g.Resources)+len(g.Prompts)+len(g.Methods)+len(g.Agents) == 0
}

// editGrants edits the grants of a document. An edit whose result does not read back as it was meant
// is an error, and changes nothing.
func editGrants(ctx context.Context, at state.Document, edit func(*editor)) error {
	return editGrantsOf(ctx, at, func(_ []byte, e *editor) error { edit(e); return nil })
}

func editGrantsOf(ctx context.Context, at state.Document, edit func(data []byte, e *editor) error) error {
	return at.Change(ctx, func(data []byte) ([]byte, error) {
		grants, lines, err := parseGrants(at.Name(), data)
		if err != nil {
			return nil, err
		}
		e := newEditor(data, grants, lines)
		if err := edit(data, e); err != nil || !e.edited {
			return data, err
		}
		out := bytes.Join(e.lines, nil)
		if got, _, err := parseGrants(at.Name(), out); err != nil || !slices.EqualFunc(got, e.grants, Grant.Equal) {
			return nil, fmt.Errorf("%s is written in a way that only a person can edit: do it by hand", at.Name())
		}
		return out, nil
	})
}

// String returns the grant as a grants file has it.
func (g Grant) String() string {
	return strings.TrimSuffix(strings.TrimPrefix(renderGrant(g), "- "), "\n")
}

// Equal reports whether two grants say the same in the same order.
func (g Grant) Equal(other Grant) bool {
	return slices.EqualFunc(g.keys(), other.keys(), func(a, b grantKey) bool { return slices.Equal(*a.values, *b.values) })
}
