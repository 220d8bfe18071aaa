package wasi

import (
	"context"
	"os"

	"github.com/tetratelabs/wazero/api"
)

// How to open (typenames.witx, $oflags).
const (
	openCreate = 1 << iota
	openDirectory
	openExclusive
	openTruncate

	openAll = openCreate | openDirectory | openExclusive | openTruncate
)

// An opening is what a guest asks of path_open.
type opening struct {
	follow     bool
	how        uint32 // openCreate...
	rights     rights
	inheriting rights
	flags      fdflags
}

func pathOpen(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	if _, ok := at(mem, a[8], 4); !ok {
		return errFault
	}
	from, e := p.table.directory(a[0], rightPathOpen)
	if e != success {
		return e
	}
	path, e := p.text(mem, a[2], a[3])
	if e != success {
		return e
	}
	o, e := openingOf(from, a)
	if e != success {
		return e
	}
	if e := p.room(); e != success {
		return e
	}
	e = errAgain
	for n := 0; n < attempts && e == errAgain; n++ {
		p.table.leave(0)
		var f *file
		if f, e = p.open(ctx, from.dir, path, o); e == success {
			mem.WriteUint32Le(uint32(a[8]), p.table.add(f))
		}
	}
	return e
}

// openingOf checks what the guest asks for against what the directory gives.
// The rights to read and write must be given; others are left out silently if
// they are not, as languages ask for all they know.
func openingOf(from *file, a []uint64) (o opening, e errno) {
	follow, e := follows(a[1])
	if e != success {
		return o, e
	}
	how, flags := uint32(a[4]), uint32(a[7])
	if how&^openAll != 0 || flags&^uint32(flagsAll) != 0 || how&openDirectory != 0 && how&(openCreate|openTruncate) != 0 {
		return o, errInvalid
	}
	if how&openCreate != 0 {
		e = from.need(rightPathCreateFile)
	}
	if how&openTruncate != 0 && e == success {
		e = from.need(rightPathSetSize)
	}
	asked := rights(a[5])
	if must := asked & (rightFdRead | rightFdWrite); e == success && how&openDirectory == 0 {
		e = from.missing(must &^ from.inheriting)
	}
	return opening{
		follow: follow, how: how, flags: fdflags(flags),
		rights: asked & from.inheriting, inheriting: rights(a[6]) & from.inheriting,
	}, e
}

func (o opening) has(how uint32) bool { return o.how&how != 0 }

const defaultMaxFiles = 64

// room checks that one more file may be opened.
func (p *Process) room() errno {
	limit := p.MaxFiles
	if limit == 0 {
		limit = defaultMaxFiles
	}
	if p.table.opened >= limit {
		return errManyFiles
	}
	return success
}

// open opens what path leads to. errAgain means that it changed meanwhile.
func (p *Process) open(ctx context.Context, from *directory, path string, o opening) (*file, errno) {
	t, e := p.resolve(ctx, from, path, o.follow && !o.has(openExclusive))
	switch {
	case e != success:
		return nil, e
	case t.info == nil:
		return p.create(ctx, t, o)
	case o.has(openCreate) && o.has(openExclusive):
		return nil, errExist
	case t.info.kind == typeDirectory:
		return openDir(t, o)
	case o.has(openDirectory):
		return nil, errNotDir
	case t.info.kind == typeLink:
		return nil, errLoop
	case t.info.kind != typeRegular:
		return nil, errAccess // a FIFO, device or socket
	}
	return p.openRegular(ctx, t, o)
}

func (p *Process) create(ctx context.Context, t target, o opening) (*file, errno) {
	switch {
	case !o.has(openCreate):
		return nil, errNoEntry
	case t.slash:
		return nil, errIsDir
	}
	if e := p.ask(ctx, OpCreate, t); e != success {
		return nil, e
	}
	if e := p.claimName(t); e != success {
		return nil, e
	}
	f, e := p.openFile(ctx, t, o, os.O_CREATE|os.O_EXCL)
	if e == errExist { // only now
		return nil, errAgain
	}
	return f, e
}

func openDir(t target, o opening) (*file, errno) {
	if o.has(openTruncate) || !o.has(openDirectory) && o.rights&rightFdWrite != 0 {
		return nil, errIsDir
	}
	return &file{
		dir:        &directory{place: t.place, info: t.info},
		rights:     o.rights & dirRights,
		inheriting: o.inheriting,
		flags:      o.flags,
	}, success
}

func (p *Process) openRegular(ctx context.Context, t target, o opening) (*file, errno) {
	change := o.rights&rightFdWrite != 0 || o.has(openTruncate)
	if o.rights&rightFdRead != 0 || !change {
		if e := p.ask(ctx, OpRead, t); e != success {
			return nil, e
		}
	}
	if change {
		if e := p.ask(ctx, OpWrite, t); e != success {
			return nil, e
		}
	}
	f, e := p.openFile(ctx, t, o, 0)
	if e != success || !o.has(openTruncate) {
		return f, e
	}
	if e := f.disk.resize(p, 0); e != success { // not by O_TRUNC: only now is known what was opened
		f.close()
		return nil, e
	}
	return f, success
}

// openFile opens the regular file at t, with os.OpenFile's flags in addition.
func (p *Process) openFile(ctx context.Context, t target, o opening, extra int) (*file, errno) {
	write := o.rights&rightFdWrite != 0
	mode := os.O_RDONLY
	switch {
	case (write || o.has(openTruncate)) && o.rights&rightFdRead != 0:
		mode = os.O_RDWR
	case write || o.has(openTruncate):
		mode = os.O_WRONLY
	}
	var key any
	if t.info != nil {
		key = t.info.key(t.place)
		held.hold(key)
	}
	host, info, e := t.open(mode | extra | syncMode(o.flags))
	switch {
	case e != success && key != nil:
		held.drop(key, -1)
		return nil, e
	case e != success:
		return nil, e
	case key == nil: // it is new
		key = info.key(t.place)
		held.hold(key)
		if info.links == 0 { // and was removed since
			held.remove(key, 0, t.grant)
		}
	}
	f := &file{
		disk:   &regular{place: t.place, info: info, key: key, host: host},
		rights: o.rights & fileRights,
		flags:  o.flags,
	}
	if !write {
		f.rights &^= writing
	}
	if write && o.flags&flagAppend != 0 {
		if e := p.openAppender(ctx, f.disk, o.flags); e != success {
			f.close()
			return nil, e
		}
	}
	return f, success
}

// syncMode makes every write synchronous if any of the three flags asks for it.
func syncMode(flags fdflags) int {
	if flags&flagsSync != 0 {
		return os.O_SYNC
	}
	return 0
}

// openAppender opens the file a second time, if it is still where it was.
func (p *Process) openAppender(ctx context.Context, r *regular, flags fdflags) errno {
	if r.appender != nil {
		return success
	}
	t, e := p.reach(ctx, r.place, r.info)
	if e != success {
		return e
	}
	r.appender, _, e = t.open(os.O_WRONLY | os.O_APPEND | syncMode(flags))
	return staleNotAgain(e)
}
