package wasi

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

func pathCreateDirectory(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	t, e := p.lookup(ctx, mem, a[0], rightPathCreateDirectory, false, a[1], a[2])
	if e != success {
		return e
	}
	if e := p.newName(ctx, t); e != success {
		return e
	}
	return errnoOf(t.in().mkdir(t.base()))
}

// newName asks and pays for a name that is to be made.
func (p *Process) newName(ctx context.Context, t target) errno {
	if t.info != nil {
		return errExist
	}
	if e := p.ask(ctx, OpCreate, t); e != success {
		return e
	}
	p.charge(callCost)
	return p.claimName(t)
}

func pathRemoveDirectory(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	return p.removeName(ctx, mem, a, rightPathRemoveDirectory, true)
}

func pathUnlinkFile(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	return p.removeName(ctx, mem, a, rightPathUnlink, false)
}

// removeName removes a directory, or what is none.
func (p *Process) removeName(ctx context.Context, mem api.Memory, a []uint64, right rights, directory bool) errno {
	t, e := p.lookup(ctx, mem, a[0], right, false, a[1], a[2])
	switch {
	case e != success:
		return e
	case t.info == nil:
		return errNoEntry
	case directory && t.info.kind != typeDirectory:
		return errNotDir
	case !directory && t.info.kind == typeDirectory:
		return errIsDir
	case t.rel == "":
		return errBusy
	}
	if e := p.ask(ctx, OpRemove, t); e != success {
		return e
	}
	p.charge(callCost)
	return t.freeing(nil, func() error { return t.in().remove(t.base(), directory) })
}

func pathRename(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	from, e := p.lookup(ctx, mem, a[0], rightPathRenameSource, false, a[1], a[2])
	if e != success {
		return e
	}
	to, e := p.lookup(ctx, mem, a[3], rightPathRenameTarget, false, a[4], a[5])
	if e != success {
		return e
	}
	if e := mayRename(from, to); e != success {
		return e
	}
	for _, t := range []target{from, to} {
		if e := p.ask(ctx, OpRename, t); e != success {
			return e
		}
	}
	if from.info.kind == typeDirectory && from.rel != to.rel {
		if e := p.askBelow(ctx, from, to); e != success {
			return e
		}
	}
	if !from.stands() || !to.stands() { // while the others were asked about
		return errAgain
	}
	if from.rel == to.rel {
		return success
	}
	p.charge(callCost)
	e = to.freeing(&from, func() error { return from.in().rename(from.base(), to.in(), to.base()) })
	if e != success {
		return e
	}
	p.table.follow(from.place, to.rel)
	return success
}

// maxMoved is how many names below a directory are asked about when it is renamed. With
// more it does not move as one, as between two file systems: programs then move each
// file by itself.
const maxMoved = 256

// askBelow asks about everything below a directory that is to be renamed: it gets
// another path, by which no rule about the present one would know it.
func (p *Process) askBelow(ctx context.Context, from, to target) errno {
	before := len(p.table.folders)
	defer func() { p.table.leave(before) }()
	f, e := p.enter(from.in(), from.base(), from.info)
	if e != success {
		return e
	}
	left := maxMoved
	return p.askEach(ctx, f, from.host(), to.host(), &left)
}

// askEach asks about each name in a folder, and below it, by its old and its new path.
func (p *Process) askEach(ctx context.Context, in folder, from, to string, left *int) errno {
	entries, e := p.entries(in, *left+1)
	if e != success {
		return e
	}
	if *left -= len(entries); *left < 0 {
		return errCrossDevice
	}
	for _, entry := range entries {
		from, to := filepath.Join(from, entry.name), filepath.Join(to, entry.name)
		for _, path := range []string{from, to} {
			if p.Ask(ctx, OpRename, path) != nil {
				return errAccess
			}
		}
		if entry.kind != typeDirectory {
			continue
		}
		info, err := in.lstat(entry.name)
		if err != nil {
			return errAgain
		}
		sub, e := p.enter(in, entry.name, info)
		if e == success {
			e = p.askEach(ctx, sub, from, to, left)
		}
		if e != success {
			return e
		}
	}
	return success
}

// entries returns up to most of the entries of a folder.
func (p *Process) entries(in folder, most int) ([]entry, errno) {
	f, _, err := in.open(".", os.O_RDONLY)
	if err != nil {
		return nil, errnoOf(err)
	}
	defer f.Close()
	entries, err := entriesOf(f, most)
	p.charge(callCost * (1 + len(entries)))
	if err == io.EOF {
		err = nil
	}
	return entries, errnoOf(err)
}

// freeing removes what has the target's name, or replaces it by another, and counts what
// that frees.
func (t *target) freeing(other *target, change func() error) errno {
	defer t.grant.usage.change()()
	was, err := t.in().lstat(t.base()) // as it is now that nothing of ours changes
	if err != nil {
		was = nil
	}
	if other != nil && was != nil {
		if is, err := other.in().lstat(other.base()); err == nil && is.same(was) {
			return success // two names of one file stay so, says POSIX
		}
	}
	if err := change(); err != nil {
		return errnoOf(err)
	}
	switch {
	case was == nil:
	case was.kind != typeRegular || was.links > 1:
		t.grant.usage.give(nameCost)
	case !held.remove(was.key(t.place), was.size, t.grant): // else its bytes are given back when it is closed
		t.grant.usage.give(nameCost + was.size)
	}
	return success
}

func mayRename(from, to target) errno {
	directory := func(i *info) bool { return i != nil && i.kind == typeDirectory }
	switch {
	case from.info == nil:
		return errNoEntry
	case from.grant != to.grant:
		return errCrossDevice
	case from.rel == "" || to.rel == "":
		return errBusy
	case strings.HasPrefix(to.rel, from.rel+"/"):
		return errInvalid // a directory into itself
	case directory(from.info) && to.info != nil && !directory(to.info), !directory(from.info) && to.slash:
		return errNotDir
	case !directory(from.info) && directory(to.info):
		return errIsDir
	}
	return success
}

func pathLink(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	old, e := p.find(ctx, mem, a[0], rightPathLinkSource, a[1], a[2], a[3])
	if e != success {
		return e
	}
	t, e := p.lookup(ctx, mem, a[4], rightPathLinkTarget, false, a[5], a[6])
	switch {
	case e != success:
		return e
	case old.info.kind != typeRegular:
		return errPermission
	case old.grant != t.grant:
		return errCrossDevice
	case t.slash:
		return errNoEntry
	}
	if e := p.ask(ctx, OpLink, old); e != success {
		return e
	}
	if e := p.newName(ctx, t); e != success {
		return e
	}
	if !old.stands() { // while the other was asked about
		return errAgain
	}
	return errnoOf(old.in().link(old.base(), t.in(), t.base()))
}

// pathSymlink makes only links that lead down: such a link stays within the
// tree wherever it, or a directory above it, is moved.
func pathSymlink(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	to, e := p.text(mem, a[0], a[1])
	if e != success {
		return e
	}
	t, e := p.lookup(ctx, mem, a[2], rightPathSymlink, false, a[3], a[4])
	if e != success {
		return e
	}
	if climbs(to) {
		return errPermission
	}
	if t.slash {
		return errNoEntry
	}
	if e := p.newName(ctx, t); e != success {
		return e
	}
	return errnoOf(t.in().symlink(to, t.base()))
}

func climbs(link string) bool {
	link = filepath.ToSlash(link)
	return link[0] == '/' || filepath.VolumeName(link) != "" || slices.Contains(strings.Split(link, "/"), "..")
}

func pathReadlink(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	b, ok := at(mem, a[3], uint32(a[4]))
	if !ok {
		return errFault
	}
	used, ok := at(mem, a[5], 4)
	if !ok {
		return errFault
	}
	t, e := p.find(ctx, mem, a[0], rightPathReadlink, 0, a[1], a[2])
	if e != success {
		return e
	}
	if t.info.kind != typeLink {
		return errInvalid
	}
	p.charge(callCost)
	to, err := t.in().readlink(t.base())
	if err != nil {
		return errnoOf(err)
	}
	le.PutUint32(used, uint32(copy(b, filepath.ToSlash(to))))
	return success
}
