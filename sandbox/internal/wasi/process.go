package wasi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
)

const (
	// callCost is what a system call on the guest's behalf is charged as, in
	// bytes moved: it takes about as long.
	callCost = 1024
	// syncCost is that of waiting for the disk.
	syncCost = 1 << 20
	// piece is how many bytes are moved between two charges, so that a call
	// that ran out of time or budget ends within a transfer.
	piece = 1 << 20
)

// Operations that [Process.Ask] is asked about.
const (
	OpRead   = "read"   // read a file or list a directory
	OpWrite  = "write"  // change the content or the times of a file
	OpCreate = "create" // make a file, directory or link of this name
	OpRemove = "remove" // remove a file or an empty directory
	OpRename = "rename" // asked about the old and about the new name, which may exist and is then replaced, and of a directory also about both names of all that is below it
	OpLink   = "link"   // a second name for the file, asked about as created; to be refused if reading it would be
)

// A Process is the state of one call of a guest. The zero Process has no
// arguments, no environment, an empty stdin, discards its output and reaches
// no files. It is used by one goroutine, for one call, and must be closed
// after it. Its fields are set before the call and not changed then.
type Process struct {
	Args []string // without NUL bytes
	Env  []string // KEY=value, without NUL bytes

	// Stdin is read while the guest waits: a Read that blocks must end when the
	// call's context does. If it is a [Waiter], poll_oneoff can wait for it;
	// else it counts as always ready. Nil is empty.
	Stdin io.Reader
	// NonblockStdin opens stdin with the flag nonblock: a read of nothing answers EAGAIN. Some
	// languages wait for input only in that way.
	NonblockStdin bool
	// Stdout and Stderr get the guest's memory itself and must not keep it.
	// Their errors are I/O errors to the guest. Nil discards.
	Stdout, Stderr io.Writer

	// Dirs are open from descriptor 3 on.
	Dirs []Dir
	// Ask is asked before a file is opened, a directory listed or a name
	// changed: op is one of the constants above, path the place on the host,
	// below the name its Root was opened by, without symbolic links. An error
	// refuses (EACCES). Looking at metadata and at links is not asked about.
	// Nil refuses all.
	Ask func(ctx context.Context, op, path string) error
	// Sees reports whether the guest may know of a place at all. One that it may
	// not is refused (EACCES), whether anything is there or not, and Ask is asked
	// about reading it. Nil hides nothing.
	Sees func(path string) bool

	// Charge is called with how many bytes a host call moves, in pieces of at most 1 MiB, and a
	// system call as 1024. An error ends the guest: the call returns it. Nil charges nothing.
	Charge func(bytes int) error
	// Sleep waits until ctx ends, for a guest that waits for nothing but a clock, or
	// for the end of its call. Nil just waits.
	Sleep func(ctx context.Context)
	// Exit is called with the code with which the guest exits, before it does. Nil does nothing.
	Exit func(code uint32)
	// MaxFiles is how many files and directories may be open at once, in addition to the streams
	// and Dirs. Zero means 64.
	MaxFiles int
	// MaxWritten is how many bytes guests may have added to each of Dirs, as its
	// Usage counts them; each name counts 4096. Zero means 64 MiB.
	MaxWritten int64
	// PreciseClocks gives clocks in steps of 1 us instead of 1 ms. Coarse ones hide more from a
	// guest that measures what runs at the same time.
	PreciseClocks bool

	table table
}

// A Waiter is a stdin that knows whether it would block.
type Waiter interface {
	io.Reader
	// Wait waits until Read would not block, and reports that, or until ctx
	// ends. If Read would not block it returns true also when ctx has ended.
	Wait(ctx context.Context) bool
}

// start opens the streams and directories, once.
func (p *Process) start() {
	t := &p.table
	if t.started {
		return
	}
	t.started = true
	t.files = t.first[:0]
	stdin := p.Stdin
	if stdin == nil {
		stdin = new(bytes.Reader)
	}
	t.streams[0] = file{in: stdin, rights: stdinRights}
	if p.NonblockStdin {
		t.streams[0].flags = flagNonblock
	}
	t.streams[1] = file{out: orDiscard(p.Stdout), rights: stdoutRights}
	t.streams[2] = file{out: orDiscard(p.Stderr), rights: stdoutRights}
	for i := range t.streams {
		t.files = append(t.files, &t.streams[i])
	}
	for i := range p.Dirs {
		t.files = append(t.files, p.preopen(&p.Dirs[i]))
	}
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

func (p *Process) preopen(d *Dir) *file {
	if d.Root == nil {
		return nil
	}
	g := &grant{Dir: d, usage: d.Usage}
	if g.usage == nil {
		g.usage = new(Usage)
	}
	p.table.grants = append(p.table.grants, g)
	f := &file{dir: &directory{place: place{grant: g}, preopen: true}, rights: dirRights, inheriting: dirRights | fileRights}
	if !d.Write {
		f.rights &^= changing
		f.inheriting &^= changing
	}
	return f
}

// Fresh reports whether the guest has changed nothing of what a new process would have: its
// descriptors, their rights and flags, what it has listed.
func (p *Process) Fresh() bool {
	other := Process{Stdin: p.Stdin, NonblockStdin: p.NonblockStdin, Stdout: p.Stdout, Stderr: p.Stderr, Dirs: p.Dirs}
	p.start()
	other.start()
	return slices.EqualFunc(p.table.files, other.table.files, (*file).same)
}

// Close closes the files that the guest left open. It may be called again, and
// before the first host call; afterwards nothing is open for the guest.
func (p *Process) Close() error {
	var errs []error
	for _, f := range p.table.files {
		if f != nil {
			errs = append(errs, f.close())
		}
	}
	p.table.leave(0)
	for _, g := range p.table.grants {
		if g.opened {
			errs = append(errs, g.folder.close())
		}
	}
	p.table = table{started: true}
	return errors.Join(errs...)
}

// charge ends the guest, as a host function of wazero does it, when the call
// has spent what it may.
func (p *Process) charge(bytes int) {
	if p.Charge == nil {
		return
	}
	if err := p.Charge(bytes); err != nil {
		panic(err)
	}
}
