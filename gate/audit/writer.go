package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/internal/files"
)

const (
	keepLine  = 1 << 20                       // bytes of a buffer that is kept for the next record
	timestamp = "2006-01-02T15:04:05.000000Z" // RFC 3339, of a time in UTC
)

// A writer is the growing end of a log.
//
// There is one way back from every failure: the file is closed, and the next
// line opens it as a new process would, cuts what is torn, and says so.
type writer struct {
	o    Options
	path string
	open func(path string) (file, error)
	disk func(dir string) (files.Disk, error)
	head []byte // what every line begins with

	// mu is held while a line is written: the next line holds the hash of this
	// one, so that writing is serial by nature.
	mu   sync.Mutex
	at   end
	owed owed
	down bool // no line can be written, and the operator was warned

	joining sync.Mutex // held for a moment, for joined and led
	joined  []*waiting // lines that the next to lead writes
	led     bool       // somebody writes, and has the next of those who joined lead after that
	spare   []*waiting // memory for them
	idle    sync.Pool  // of lines that wait no more, for their memory
}

// end is where the next line goes.
type end struct {
	file    file // nil: the next line opens it, and the lines before are synced
	tip     tip
	limit   int64     // size at which the file is renamed
	begun   time.Time // when its first line was written
	opened  int64     // its size after the opened line
	line    line      // the last line written, for its memory
	removed []string  // files that are gone, but that no opened line has named yet
	early   error     // why that was before Options.Hold
	full    error     // why nothing may be written now, as of looked
	looked  time.Time
	cut     int64 // bytes that were cut and that no opened line has recorded
	failed  error // why the last line was not written; the next opened line says so
	broken  error // why no line can be written any more
}

func newWriter(path string, o Options, opener func(string) (file, error)) *writer {
	head := line(`{"log":`).quoted(o.Node+"/"+o.Boot, maxText)
	return &writer{o: o, path: path, open: opener, disk: files.DiskOf, head: append(head, `,"seq":`...), at: end{limit: o.MaxSize}}
}

// A waiting line is written by the goroutine that leads then.
type waiting struct {
	body  line
	woken chan struct{} // has room for one: the line is done, or leads
	done  bool
	seq   uint64 // its number, or
	err   error  // why it is not written
}

// append writes a line and returns its number. Lines that wait together are one write: one
// of those who write leads, and the others wait for that one, and not for a lock, which
// would be given from each to the next.
func (w *writer) append(body line) (uint64, error) {
	one, _ := w.idle.Get().(*waiting)
	if one == nil {
		one = &waiting{woken: make(chan struct{}, 1)}
	}
	defer w.idle.Put(one) // it has got what it was woken with
	one.body, one.done, one.seq, one.err = body, false, 0, nil
	w.joining.Lock()
	w.joined = append(w.joined, one)
	leads := !w.led
	w.led = true
	w.joining.Unlock()
	if !leads {
		<-one.woken
	}
	if !one.done {
		w.lead(one)
	}
	one.body = nil
	if one.err == nil && one.seq == 0 {
		return 0, fmt.Errorf("audit log %s: the record was not written", w.path) // the leader has panicked
	}
	return one.seq, one.err
}

// lead writes the waiting lines; one of them is the leader's own.
func (w *writer) lead(one *waiting) {
	w.joining.Lock()
	all := w.joined
	w.joined = w.spare[:0]
	w.joining.Unlock()
	defer w.written(all, one)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.appendAll(all)
}

// written wakes those whose lines one has written, and has the next one lead.
func (w *writer) written(all []*waiting, one *waiting) {
	for _, other := range all {
		if other.done = true; other != one {
			other.woken <- struct{}{}
		}
	}
	clear(all)
	w.joining.Lock()
	defer w.joining.Unlock()
	w.spare = all
	if w.led = len(w.joined) > 0; w.led {
		w.joined[0].woken <- struct{}{}
	}
}

// appendAll writes lines. Callers hold mu.
func (w *writer) appendAll(all []*waiting) {
	for rest := all; len(rest) > 0; {
		n := together(rest)
		err := w.caughtUp()
		for _, one := range rest[:n] {
			one.err = err
		}
		if err == nil {
			w.write(rest[:n])
		}
		if slices.ContainsFunc(rest[:n], func(one *waiting) bool { return one.err == nil }) {
			w.works()
		}
		rest = rest[n:]
	}
}

// together returns how many of the lines are one write: as many as fit into the buffer that
// is kept, and one at least.
func together(all []*waiting) int {
	size := 0
	for n, one := range all {
		if size += len(one.body); n > 0 && size > keepLine {
			return n
		}
	}
	return len(all)
}

func (w *writer) healthy() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.caughtUp()
	if err == nil {
		w.works()
	}
	return err
}

// caughtUp sees to it that there is a file with room, and that what is owed is written.
func (w *writer) caughtUp() error {
	if err := w.ready(); err != nil {
		return err
	}
	return w.repay()
}

// ready sees to it that there is a file with room. Callers hold mu, here and
// below.
func (w *writer) ready() error {
	if w.at.file != nil {
		if end, err := w.at.file.Seek(0, io.SeekEnd); err == nil && end < w.at.tip.size {
			w.lose("another program shortened the file")
		}
	}
	if w.at.file != nil && (w.at.tip.size >= w.at.limit || w.old()) {
		if err := w.blocked(); err != nil {
			return err
		}
		w.rotate()
	}
	if w.at.broken != nil {
		return fmt.Errorf("audit log %s: %w", w.path, w.at.broken)
	}
	if w.at.file == nil {
		return w.reopen()
	}
	return nil
}

// old reports whether the file is to be renamed for its age. One without any record since
// it was opened is not.
func (w *writer) old() bool {
	return w.o.Rotate > 0 && w.at.tip.size > w.at.opened && time.Since(w.at.begun) >= w.o.Rotate
}

// reopen opens the file, goes on at its end, and says so.
func (w *writer) reopen() error {
	f, err := w.open(w.path)
	if err != nil {
		return w.fail(fmt.Errorf("open: %w", err))
	}
	w.at.file = f
	t, err := readTip(f)
	if err == nil && t.torn > 0 {
		w.o.Log.Warn("audit log cut", "path", w.path, "bytes", t.torn)
		err = f.Truncate(t.size)
		w.at.cut += t.torn
	}
	if err == nil && t.seq == 0 && w.at.tip.seq == 0 {
		err = w.follow(&t)
	}
	if err != nil {
		return w.fail(err)
	}
	// After a failure the file knows what was written. But a file that another program has put here
	// does not make numbers come twice.
	if t.hash == "" {
		t.hash = w.at.tip.hash
	}
	t.seq = max(t.seq, w.at.tip.seq)
	w.at.tip = t
	e := Entry{
		Event: Opened, Format: format, Node: w.o.Node, Boot: w.o.Boot, Version: w.o.Version, Snapshot: w.o.Snapshot,
		CutBytes: w.at.cut, Removed: w.at.removed,
	}
	if err := errors.Join(w.at.failed, w.at.early); err != nil {
		e.Error = err.Error()
	}
	if err := w.writeOne(line{}.body(&e)); err != nil {
		return err
	}
	w.at.failed, w.at.cut, w.at.removed, w.at.early, w.at.opened = nil, 0, nil, nil, w.at.tip.size
	if _, w.at.begun, err = begins(w.path); err != nil {
		w.at.begun = time.Now()
	}
	if err := syncFolder(w.path); err != nil {
		w.o.Log.Warn("folder of audit log not synced", "path", w.path, "error", err)
	}
	return nil
}

// follow makes the chain of an empty file go on from the newest renamed one.
func (w *writer) follow(t *tip) error {
	names, err := rotated(w.path)
	if err != nil || len(names) == 0 {
		return err
	}
	f, err := os.Open(names[len(names)-1])
	if err != nil {
		return err
	}
	defer f.Close()
	last, err := readTip(f)
	if err != nil {
		return fmt.Errorf("continue %s: %w", f.Name(), err)
	}
	t.seq, t.hash = last.seq, last.hash
	return nil
}

// writeOne writes one line.
func (w *writer) writeOne(body line) error {
	one := &waiting{body: body}
	w.write([]*waiting{one})
	return one.err
}

// write writes lines, each with the hash of the one before, in one piece: all of them or
// none, but for those that are too long.
func (w *writer) write(all []*waiting) {
	b, t := w.at.line[:0], w.at.tip
	var text [2 * sha256.Size]byte
	for _, one := range all {
		start := len(b)
		b = w.compose(b, t, one.body)
		n := len(b) - start
		if n > maxLine {
			one.err = fmt.Errorf("audit log %s: a record of %d bytes is longer than a line may be (%d)", w.path, n, maxLine)
			b = b[:start]
			continue
		}
		hash := sha256.Sum256(b[start : len(b)-1])
		t = tip{size: t.size + int64(n), seq: t.seq + 1, hash: string(hex.AppendEncode(text[:0], hash[:]))}
		one.seq = t.seq
	}
	if cap(b) <= keepLine {
		w.at.line = b
	}
	if len(b) == 0 {
		return
	}
	if _, err := w.at.file.WriteAt(b, w.at.tip.size); err != nil {
		_ = w.at.file.Truncate(w.at.tip.size) // if it fails, the file is cut when it is opened again
		err = w.fail(err)
		for _, one := range all {
			if one.seq > 0 {
				one.seq, one.err = 0, err
			}
		}
		return
	}
	w.at.tip = t
}

// compose appends the line that comes after a tip.
func (w *writer) compose(b line, after tip, body line) line {
	b = strconv.AppendUint(append(b, w.head...), after.seq+1, 10)
	b = append(time.Now().UTC().AppendFormat(b.key("time"), `"`+timestamp+`"`), body...)
	if after.hash != "" {
		b = append(append(append(b.key("prev"), '"'), after.hash...), '"')
	}
	return append(b, '}', '\n')
}

// fail gives up the file because of err, which it returns.
func (w *writer) fail(err error) error {
	w.failing(err)
	w.at.failed = err
	if w.at.file != nil {
		w.release()
	}
	return fmt.Errorf("audit log %s: %w", w.path, err)
}

// release syncs and closes the file.
func (w *writer) release() {
	if err := w.at.file.Sync(); err != nil {
		w.breakOff(err)
		return
	}
	w.at.file.Close()
	w.at.file = nil
}

// breakOff ends writing after a failed sync. The system may have dropped what
// was written and count it as clean, so that no later sync tells anything.
func (w *writer) breakOff(err error) {
	w.at.broken = fmt.Errorf("sync: %w; records may be lost: check the disk, then restart the gateway", err)
	w.failing(w.at.broken)
	w.at.file.Close()
	w.at.file = nil
}

// rotate renames the file. If that cannot be done the file goes on growing: a
// log too large is better than none.
func (w *writer) rotate() {
	w.release()
	if w.at.broken != nil {
		return
	}
	names, err := rotated(w.path)
	if err == nil {
		last := 0
		if len(names) > 0 {
			last = number(w.path, names[len(names)-1])
		}
		err = os.Rename(w.path, numbered(w.path, last+1))
	}
	if err != nil {
		w.at.limit, w.at.begun = w.at.tip.size+w.o.MaxSize/8, time.Now()
		w.o.Log.Warn("audit log not rotated", "path", w.path, "error", err)
		return
	}
	w.at.limit, w.at.tip.size = w.o.MaxSize, 0
	if err := w.retire(); err != nil {
		w.o.Log.Warn("old audit log not removed", "path", w.path, "error", err)
	}
}

// save syncs the file and returns the number of the last record that is on disk
// then.
func (w *writer) save() (uint64, error) {
	for {
		w.mu.Lock()
		f, t, broken := w.at.file, w.at.tip, w.at.broken
		w.mu.Unlock()
		if broken != nil {
			return 0, fmt.Errorf("audit log %s: %w", w.path, broken)
		}
		if f == nil {
			return t.seq, nil
		}
		err := f.Sync()
		if err == nil {
			w.check(f)
			return t.seq, nil
		}
		w.mu.Lock()
		if w.at.file == f { // else it was closed meanwhile, after a sync of its own
			w.breakOff(err)
		}
		w.mu.Unlock()
	}
}

// check gives up a file that is not where it should be: records in a file that was removed are no
// evidence. The chain goes on in a new file.
func (w *writer) check(f file) {
	is, err := f.Stat()
	there, lost := os.Stat(w.path)
	if err == nil && lost == nil && os.SameFile(is, there) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at.file != f {
		return
	}
	w.lose("another program moved or removed the file")
}

// lose gives the file up, because records that were in it are not where they should be. The next
// record opens a file again and says so; the chain goes on.
func (w *writer) lose(why string) {
	w.at.failed = errors.New(why)
	w.o.Log.Error("audit log lost", "path", w.path, "error", w.at.failed)
	w.release()
}

// close ends writing.
func (w *writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.owed.lines) > 0 {
		_ = w.caughtUp() // the last chance
		w.abandon()
	}
	if w.at.file != nil {
		w.release()
	}
	err := w.at.broken
	w.at.broken = errors.New("it is closed")
	return err
}
