package wasi

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

const (
	// maxDepth is how many names a resolved path may have below its grant.
	// Resolving looks at each name from the grant on, so that the work grows
	// with the square of it.
	maxDepth = 64
	// maxSteps is how many names resolving may look at, over all links.
	maxSteps = 256
	maxLinks = 40 // as in Linux

	followLink = 1 // $lookupflags
)

// A place is a name below a granted directory, without symbolic links or dots;
// "" is the directory itself.
type place struct {
	grant *Dir
	rel   string
}

// name is what os.Root calls it.
func (l place) name() string {
	if l.rel == "" {
		return "."
	}
	return l.rel
}

// host is the place's path on the host.
func (l place) host() string {
	return filepath.Join(l.grant.Root.Name(), filepath.FromSlash(l.rel))
}

// same checks that what is here is still the file that info describes.
func (l place) same(info fs.FileInfo) (fs.FileInfo, errno) {
	now, err := l.grant.Root.Lstat(l.name())
	if err != nil {
		return nil, errnoOf(err)
	}
	if !os.SameFile(now, info) {
		return nil, errStale
	}
	return now, success
}

// A target is where a path leads.
type target struct {
	place
	info  fs.FileInfo // nil: nothing has this name, but it could be made
	slash bool        // the path says that it is a directory
}

// lookup resolves the guest's path below the directory fd, which must have the
// right. What it finds need not exist.
func (p *Process) lookup(mem api.Memory, fd uint64, want rights, follow bool, pointer, size uint64) (target, errno) {
	from, e := p.directory(fd, want)
	if e != success {
		return target{}, e
	}
	path, e := p.text(mem, pointer, size)
	if e != success {
		return target{}, e
	}
	return p.resolve(from.dir, path, follow)
}

// find is lookup, by $lookupflags, of what exists.
func (p *Process) find(mem api.Memory, fd uint64, want rights, flags, pointer, size uint64) (target, errno) {
	follow, e := follows(flags)
	if e != success {
		return target{}, e
	}
	t, e := p.lookup(mem, fd, want, follow, pointer, size)
	if e == success && t.info == nil {
		return t, errNoEntry
	}
	return t, e
}

func follows(flags uint64) (bool, errno) {
	if uint32(flags)&^followLink != 0 {
		return false, errInvalid
	}
	return uint32(flags) == followLink, success
}

// A walk is where resolving a path has come to.
type walk struct {
	target
	floor string // `..` does not go above this directory
	rest  string // of the path
	links int
}

// resolve finds where path leads from d, which it cannot leave. Symbolic links
// are followed here and not by the host, so that what is asked about and opened
// is the place itself. follow says whether to follow one at the end, too.
func (p *Process) resolve(d *directory, path string, follow bool) (target, errno) {
	p.charge(callCost)
	info, e := d.stat()
	if e != success {
		return target{}, e
	}
	w := walk{target: target{place: d.place, info: info}, floor: d.rel, rest: path}
	for range maxSteps {
		p.charge(callCost * (1 + strings.Count(w.rel, "/"))) // os.Root opens each directory on the way
		if e := w.step(follow); e != success {
			return target{}, e
		}
		if w.rest != "" {
			continue
		}
		if w.slash && w.info != nil && !w.info.IsDir() {
			return target{}, errNotDir
		}
		return w.target, success
	}
	return target{}, errNameLong
}

// step goes on by one name.
func (w *walk) step(follow bool) errno {
	switch {
	case w.info == nil:
		return errNoEntry
	case !w.info.IsDir():
		return errNotDir
	case w.rest[0] == '/': // an absolute path or link: slashes after names are gone
		return errPermission
	}
	name, rest, slash := strings.Cut(w.rest, "/")
	w.rest, w.slash = strings.TrimLeft(rest, "/"), slash
	switch {
	case name == ".":
		return success
	case name == "..":
		return w.up()
	case !filepath.IsLocal(name) || strings.ContainsRune(name, filepath.Separator):
		return errInvalid // such as NUL or a\b on Windows
	}
	return w.down(name, follow || slash)
}

func (w *walk) up() errno {
	if w.rel == w.floor {
		return errPermission
	}
	w.rel = w.rel[:max(0, strings.LastIndexByte(w.rel, '/'))]
	return w.look(w.rel)
}

func (w *walk) down(name string, follow bool) errno {
	from := w.target
	if from.rel != "" {
		name = from.rel + "/" + name
	}
	if strings.Count(name, "/") >= maxDepth {
		return errNameLong
	}
	if e := w.look(name); e != success {
		return e
	}
	if !follow || w.info == nil || w.info.Mode()&fs.ModeSymlink == 0 {
		return success
	}
	w.target = from
	return w.follow(name)
}

// look makes rel, which need not exist, the place where the walk is.
func (w *walk) look(rel string) errno {
	w.rel = rel
	info, err := w.grant.Root.Lstat(w.name())
	if errors.Is(err, fs.ErrNotExist) {
		w.info = nil
		return success
	}
	w.info = info
	return errnoOf(err)
}

// follow puts the target of the link called name before the rest of the path.
func (w *walk) follow(name string) errno {
	if w.links++; w.links > maxLinks {
		return errLoop
	}
	to, err := w.grant.Root.Readlink(name)
	if err != nil {
		return errnoOf(err)
	}
	to = filepath.ToSlash(to)
	if w.slash {
		to += "/"
	}
	if w.rest = to + w.rest; len(w.rest) > maxPath || w.rest == "" {
		return errNameLong
	}
	return success
}
