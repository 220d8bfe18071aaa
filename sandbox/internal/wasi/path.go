package wasi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"
)

const (
	// maxDepth is how many names a resolved path may have below its grant:
	// while a walk lasts, each directory on it is open.
	maxDepth = 64
	// maxSteps is how many names resolving may look at, over all links.
	maxSteps = 256
	maxLinks = 40 // as in Linux

	// attempts is how often a path is resolved and a file is opened anew when
	// another writer changed it meanwhile, as programs do that write a new file
	// and rename it.
	attempts = 8

	followLink = 1 // $lookupflags
)

// A target is where a path leads. What is open for it is closed when the host
// call ends.
type target struct {
	place
	way   []step // the directories above it, from that of the grant on
	info  *info  // nil: nothing has this name, but it could be made
	slash bool   // the path says that it is a directory
}

// A step is a directory on the way to a place.
type step struct {
	folder
	info *info
}

// in is the folder that has the target's name.
func (t *target) in() folder {
	if len(t.way) == 0 {
		return t.grant.folder
	}
	return t.way[len(t.way)-1].folder
}

// stands reports whether the way is still the one that was gone, so that what
// was asked about is what is there.
func (t *target) stands() bool {
	if len(t.way) < 2 {
		return true
	}
	names := strings.Split(t.rel, "/")
	for i := 1; i < len(t.way); i++ {
		now, err := t.way[i-1].lstat(names[i-1])
		if err != nil || !now.same(t.way[i].info) {
			return false
		}
	}
	return true
}

// open opens the target, which must be the file or directory that was looked at.
func (t *target) open(mode int) (*os.File, *info, errno) {
	f, info, err := t.in().open(t.base(), mode)
	switch e := errnoOf(err); {
	case t.info != nil && replaced(e):
		return nil, nil, errAgain
	case e != success:
		return nil, nil, e
	case t.info != nil && !info.same(t.info):
		f.Close()
		return nil, nil, errAgain
	}
	return f, info, success
}

// ask asks about the target, to which the same way must still lead afterwards.
func (p *Process) ask(ctx context.Context, op string, t target) errno {
	switch {
	case p.Ask == nil || p.Ask(ctx, op, t.host()) != nil:
		return errAccess
	case !t.stands():
		return errAgain
	}
	return success
}

// lookup resolves the guest's path below the directory fd, which must have the
// right. What it finds need not exist.
func (p *Process) lookup(ctx context.Context, mem api.Memory, fd uint64, want rights, follow bool, pointer, size uint64) (target, errno) {
	from, e := p.table.directory(fd, want)
	if e != success {
		return target{}, e
	}
	path, e := p.text(mem, pointer, size)
	if e != success {
		return target{}, e
	}
	return p.resolve(ctx, from.dir, path, follow)
}

// find is lookup, by $lookupflags, of what exists.
func (p *Process) find(ctx context.Context, mem api.Memory, fd uint64, want rights, flags, pointer, size uint64) (target, errno) {
	follow, e := follows(flags)
	if e != success {
		return target{}, e
	}
	t, e := p.lookup(ctx, mem, fd, want, follow, pointer, size)
	if e == success && t.info == nil {
		return t, errNoEntry
	}
	return t, e
}

// text reads a path or link target, a copy.
func (p *Process) text(mem api.Memory, pointer, size uint64) (string, errno) {
	n := uint32(size)
	if n > maxPath {
		return "", errNameLong
	}
	view, ok := at(mem, pointer, n)
	switch {
	case !ok:
		return "", errFault
	case n == 0:
		return "", errNoEntry
	case !utf8.Valid(view): // the policy would be asked about another name than is opened
		return "", errIllegal
	}
	p.charge(len(view))
	return string(view), success
}

func follows(flags uint64) (bool, errno) {
	if uint32(flags)&^followLink != 0 {
		return false, errInvalid
	}
	return uint32(flags) == followLink, success
}

// resolve finds where path leads from d, which it cannot leave. Symbolic links
// are followed here and not by the host, one open folder after the other, so that
// what is asked about and opened is the place itself. follow says whether to
// follow one at the end, too.
func (p *Process) resolve(ctx context.Context, d *directory, path string, follow bool) (t target, e errno) {
	before := len(p.table.folders)
	e = errAgain
	for n := 0; n < attempts && e == errAgain; n++ {
		p.table.leave(before)
		t, e = p.resolveOnce(ctx, d, path, follow)
	}
	return t, e
}

func (p *Process) resolveOnce(ctx context.Context, d *directory, path string, follow bool) (target, errno) {
	from, e := p.reach(ctx, d.place, d.info)
	if e != success {
		return target{}, e
	}
	w := walk{target: from, ctx: ctx, p: p, floor: d.rel, rest: path}
	for range maxSteps {
		if e := w.step(follow); e != success {
			return target{}, e
		}
		if w.rest != "" {
			continue
		}
		if w.slash && w.info != nil && w.info.kind != typeDirectory {
			return target{}, errNotDir
		}
		return w.target, success
	}
	return target{}, errNameLong
}

// reach goes to a place again, where there must still be what want describes;
// nil is the grant's own directory.
func (p *Process) reach(ctx context.Context, at place, want *info) (target, errno) {
	w := walk{ctx: ctx, p: p, target: target{place: place{grant: at.grant}}}
	if e := at.grant.open(); e != success {
		return target{}, e
	}
	if e := w.look(); e != success {
		return target{}, e
	}
	for rest := at.rel; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch e := w.down(name); {
		case e == errAgain:
			return target{}, errStale
		case e != success:
			return target{}, e
		case w.info == nil:
			return target{}, errNoEntry
		case rest != "" && w.info.kind != typeDirectory:
			return target{}, errStale
		}
	}
	if want != nil && !w.info.same(want) {
		return target{}, errStale
	}
	return w.target, success
}

// A walk is where resolving a path has come to.
type walk struct {
	target
	ctx   context.Context // of the host call
	p     *Process
	floor string // `..` does not go above this directory
	rest  string // of the path
	links int
}

// step goes on by one name.
func (w *walk) step(follow bool) errno {
	switch {
	case w.info == nil:
		return errNoEntry
	case w.info.kind != typeDirectory:
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
	if e := w.down(name); e != success {
		return e
	}
	if w.info != nil && w.info.kind == typeLink && (follow || slash) {
		return w.follow()
	}
	return success
}

// down enters the directory where the walk is, and looks at a name in it.
func (w *walk) down(name string) errno {
	if len(w.way) >= maxDepth {
		return errNameLong
	}
	s := step{w.grant.folder, w.info}
	if w.rel != "" {
		f, e := w.p.enter(w.in(), w.base(), w.info)
		if e != success {
			return e
		}
		s.folder = f
		name = w.rel + "/" + name
	}
	w.way, w.rel = append(w.way, s), name
	return w.look()
}

// up goes to the directory above, for `..`.
func (w *walk) up() errno {
	if w.rel == w.floor {
		return errPermission
	}
	w.back()
	return success
}

// back goes to the directory that was come through.
func (w *walk) back() {
	last := len(w.way) - 1
	if last > 0 { // else it is the grant's, which stays open
		w.p.table.leave(len(w.p.table.folders) - 1)
	}
	w.info, w.way = w.way[last].info, w.way[:last]
	w.rel = w.rel[:max(0, strings.LastIndexByte(w.rel, '/'))]
}

// look looks at what is where the walk is, if anything.
func (w *walk) look() errno {
	if w.p.Sees != nil {
		if path := w.host(); !w.p.Sees(path) {
			if w.p.Ask != nil {
				_ = w.p.Ask(w.ctx, OpRead, path) // which refuses and records it
			}
			return errAccess
		}
	}
	w.p.charge(callCost)
	info, err := w.in().lstat(w.base())
	w.info = info
	if errors.Is(err, fs.ErrNotExist) {
		return success
	}
	return errnoOf(err)
}

// follow puts the target of the link where the walk is before the rest of the
// path, and goes back to the directory that has the link.
func (w *walk) follow() errno {
	if w.links++; w.links > maxLinks {
		return errLoop
	}
	w.p.charge(callCost)
	to, err := w.in().readlink(w.base())
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
	w.back()
	return success
}

// enter opens a directory on a walk, which must be the one that was looked at.
func (p *Process) enter(in folder, name string, want *info) (folder, errno) {
	p.charge(callCost)
	f, err := in.enter(name)
	switch e := errnoOf(err); {
	case replaced(e):
		return folder{}, errAgain
	case e != success:
		return folder{}, e
	}
	p.table.folders = append(p.table.folders, f)
	is, err := f.lstat(".")
	if err != nil || !is.same(want) {
		return folder{}, errAgain
	}
	return f, success
}

// replaced reports whether e, of opening what was there when it was looked at, says
// that something else is there now: nothing, a link, or a file for a directory.
func replaced(e errno) bool { return e == errNoEntry || e == errLoop || e == errNotDir }
