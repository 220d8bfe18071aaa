package lock

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/internal/files"
)

const (
	// FileName is how the lockfile is called.
	FileName = "wasmgate.lock"
	// maxFile bounds a lockfile, maxLine a line of one, in bytes: 10,000 tools take
	// some 3 MB, and a name is at most 512 bytes, escaped.
	maxFile = 16 << 20
	maxLine = 8 << 10

	header  = "wasmgate-lock 1"
	comment = "# Approved definitions of MCP servers and their tools, by digest. Written by `wasmgate pin approve`."
)

// A File is a lockfile: digests that a person approved. It is immutable; the zero
// File approves of nothing.
type File struct {
	approved map[Key]map[string]Parts // by digest
	servers  map[string]struct{}
	comments map[Key][]string // the lines before a block; of the zero Key, those at the end
}

// A SyntaxError says what is wrong with a lockfile, and where.
type SyntaxError struct {
	File string
	Line int // counted from 1
	Text string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text) }

// Load reads the lockfile at path. One that does not exist is empty. The error is
// a [*SyntaxError] if it can be read and not understood.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return new(File), nil
	}
	if err != nil {
		return nil, fmt.Errorf("the lockfile cannot be read: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("the lockfile cannot be read: %w", err)
	}
	return Parse(path, b)
}

// Parse reads a lockfile. Its format is line by line, so that versions of it can
// be merged: after a line with the version come blocks, separated by empty lines.
// The first line of a block names what is pinned. Each further one, indented, approves
// one version of it: its digest, and then its [Parts]. Lines that begin with # are
// comments. Blocks and digests may come in any order and more than once.
func Parse(name string, b []byte) (*File, error) {
	p := parser{file: &File{comments: make(map[Key][]string)}}
	if len(b) > maxFile {
		return nil, &SyntaxError{name, 1, fmt.Sprintf("the file is larger than %d bytes", maxFile)}
	}
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if err := p.line(strings.TrimRight(string(line), "\r\n")); err != nil {
			return nil, &SyntaxError{name, n, err.Error()}
		}
	}
	if err := p.close(); err != nil {
		return nil, &SyntaxError{name, n, err.Error()}
	}
	if n > 0 && !p.begun {
		return nil, &SyntaxError{name, n, "the file does not begin with the line " + header}
	}
	p.file.comments[Key{}] = p.comments
	return p.file, nil
}

// parser reads a lockfile line by line.
type parser struct {
	file     *File
	begun    bool // the version was read
	block    Key  // under way; zero: none
	filled   bool // it has a digest
	comments []string
}

var (
	bare       = regexp.MustCompile(`^[A-Za-z0-9_./:{}-]+$`)
	serverID   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	digestLine = regexp.MustCompile(`^sha256:([0-9a-f]{64})((?: [A-Za-z0-9_.$-]{1,64}:[0-9a-f]{16})*)$`)
	// conflict matches what git leaves in a file that it could not merge.
	conflict = regexp.MustCompile(`^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)( |$)`)
)

func (p *parser) line(s string) error {
	switch {
	case len(s) > maxLine:
		return fmt.Errorf("the line is longer than %d bytes", maxLine)
	case conflict.MatchString(s):
		return errors.New("a merge conflict is not resolved: keep the lines of both sides that you approve of, and remove the markers")
	case strings.TrimSpace(s) == "":
		return p.close()
	case strings.HasPrefix(s, "#"):
		if s != comment {
			p.comments = append(p.comments, s)
		}
		return nil
	case !p.begun:
		if s != header {
			return fmt.Errorf("expected the line %q", header)
		}
		p.begun = true
		return nil
	case strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\t"):
		return p.digest(strings.TrimSpace(s))
	default:
		if err := p.close(); err != nil {
			return err
		}
		return p.open(s)
	}
}

func (p *parser) open(s string) (err error) {
	if p.block, err = parseKey(s); err != nil {
		return err
	}
	if len(p.comments) > 0 {
		p.file.comments[p.block] = append(p.file.comments[p.block], p.comments...)
		p.comments = nil
	}
	return nil
}

func (p *parser) digest(s string) error {
	if p.block == (Key{}) {
		return errors.New("this digest has no item above it: write it below the line of its tool, prompt or server")
	}
	m := digestLine.FindStringSubmatch(s)
	if m == nil {
		return errors.New("expected sha256: and 64 hex digits in lower case, then the parts, each NAME: and 16 hex digits")
	}
	p.file.add(Pin{p.block, m[1], Parts(strings.TrimSpace(m[2]))})
	p.filled = true
	return nil
}

// close ends the block under way.
func (p *parser) close() error {
	if p.block != (Key{}) && !p.filled {
		return fmt.Errorf("%s has no digest", p.block)
	}
	p.block, p.filled = Key{}, false
	return nil
}

func parseKey(s string) (Key, error) {
	kind, rest, _ := strings.Cut(s, " ")
	server, name, hasName := strings.Cut(rest, " ")
	k := Key{Server: server, Kind: Kind(kind), Name: name}
	how, i := k.Kind.of()
	if i < 0 {
		var known []string
		for _, one := range kinds {
			known = append(known, string(one.Kind))
		}
		return Key{}, fmt.Errorf("%q is not a kind of definition that is pinned; expected one of %s", kind, strings.Join(known, ", "))
	}
	if !serverID.MatchString(server) {
		return Key{}, fmt.Errorf("%q is not a name of a server", server)
	}
	if hasName == how.single {
		return Key{}, fmt.Errorf("expected %s", map[bool]string{false: kind + " SERVER NAME", true: kind + " SERVER"}[how.single])
	}
	if !hasName || bare.MatchString(name) {
		return k, nil
	}
	var err error
	if !strings.HasPrefix(name, `"`) {
		err = strconv.ErrSyntax
	} else if k.Name, err = strconv.Unquote(name); err == nil && k.Name == "" {
		err = strconv.ErrSyntax
	}
	if err != nil {
		return Key{}, fmt.Errorf("the name %s is not written as a name, or in quotes", strconv.QuoteToASCII(name))
	}
	return k, nil
}

// line returns the first line of the block of k.
func (k Key) line() string {
	s := string(k.Kind) + " " + k.Server
	how, _ := k.Kind.of()
	switch {
	case how.single:
		return s
	case bare.MatchString(k.Name):
		return s + " " + k.Name
	default:
		return s + " " + strconv.QuoteToASCII(k.Name)
	}
}

func (f *File) add(p Pin) {
	if f.approved == nil {
		f.approved, f.servers = make(map[Key]map[string]Parts), make(map[string]struct{})
	}
	if f.approved[p.Key] == nil {
		f.approved[p.Key] = make(map[string]Parts)
	}
	f.approved[p.Key][p.Digest], f.servers[p.Server] = cmp.Or(f.approved[p.Key][p.Digest], p.Parts), struct{}{}
}

// Approves reports whether the file has the digest of the thing.
func (f *File) Approves(k Key, digest string) bool {
	_, ok := f.approved[k][digest]
	return ok
}

// Names reports whether the file has any digest of the thing.
func (f *File) Names(k Key) bool { return len(f.approved[k]) > 0 }

// Rules reports whether the file has anything of a server. Then it alone says what
// of that server is approved.
func (f *File) Rules(server string) bool {
	_, ok := f.servers[server]
	return ok
}

// Pins returns all approved digests, sorted.
func (f *File) Pins() []Pin {
	var all []Pin
	for k := range f.approved {
		all = append(all, f.of(k)...)
	}
	slices.SortFunc(all, Pin.compare)
	return all
}

// of returns the approved digests of a thing, sorted.
func (f *File) of(k Key) (all []Pin) {
	for digest, parts := range f.approved[k] {
		all = append(all, Pin{k, digest, parts})
	}
	slices.SortFunc(all, Pin.compare)
	return all
}

// With returns a file that has the given digests too.
func (f *File) With(pins ...Pin) *File {
	g := &File{comments: f.comments}
	for _, p := range slices.Concat(f.Pins(), pins) {
		g.add(p)
	}
	return g
}

// Bytes returns the file as it is written: the same bytes for the same digests,
// sorted, whatever the order in which they were approved. Comments before blocks
// are kept.
func (f *File) Bytes() []byte {
	var b bytes.Buffer
	b.WriteString(comment + "\n" + header + "\n")
	var block Key
	for _, p := range f.Pins() {
		if p.Key != block {
			block = p.Key
			b.WriteString("\n")
			for _, c := range f.comments[block] {
				b.WriteString(c + "\n")
			}
			b.WriteString(block.line() + "\n")
		}
		b.WriteString(strings.TrimRight("  "+hash+p.Digest+" "+string(p.Parts), " ") + "\n")
	}
	if end := f.comments[Key{}]; len(end) > 0 {
		b.WriteString("\n" + strings.Join(end, "\n") + "\n")
	}
	return b.Bytes()
}

// Approve adds digests to the lockfile at path and puts it in place of the old one
// in one step. Of two processes that do so at once, one waits for the other. It
// returns those that were not in it before. It is for what a person does:
// a gateway never approves of anything by itself.
func Approve(path string, pins []Pin) (added []Pin, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // not the link to it, if it is one
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	unlock, err := files.LockBeside(path)
	if err != nil {
		return nil, fmt.Errorf("the lockfile %s cannot be changed: %w", path, err)
	}
	defer unlock()
	f, err := Load(path)
	if err != nil {
		return nil, err
	}
	out, added, err := f.adding("lockfile "+path, pins)
	if err != nil || out == nil {
		return nil, err
	}
	return added, files.ReplaceSynced(path, out, files.Mode(path, 0o644))
}

// adding returns the file as it is written with further pins, and those that it did not have; nil if
// it has all.
func (f *File) adding(name string, pins []Pin) (out []byte, added []Pin, err error) {
	for _, p := range pins {
		if !f.Approves(p.Key, p.Digest) {
			added = append(added, p)
		}
	}
	if len(added) == 0 {
		return nil, nil, nil
	}
	if out = f.With(added...).Bytes(); len(out) > maxFile {
		return nil, nil, fmt.Errorf("%s would be larger than %d bytes: remove approvals that nothing uses any more", name, maxFile)
	}
	return out, added, nil
}
