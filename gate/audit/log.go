package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// syncAfter is the age at which a record is synced in the background: what the
// death of the machine can cost.
const syncAfter = 100 * time.Millisecond

// A Log is a log open for writing. Use it from several goroutines.
type Log struct {
	o       Options
	w       *writer
	lock    io.Closer
	unsaved chan struct{} // has a token while a record waits for the background sync
	stop    chan struct{}
	ended   sync.WaitGroup
	closing sync.Once
	synced  synced

	full, always atomic.Bool // Options.Record is full, Options.Sync is always; see [Log.Change]
}

// synced is the number up to which records are on disk. Its mutex is held while a file is synced: a
// writer that waits for it finds its own record synced, too.
type synced struct {
	mu  sync.Mutex
	seq uint64
}

var _ gate.Recorder = (*Log)(nil)

// Open opens the log at path, a name such as audit.jsonl, and continues its
// chain; if there is no file it begins one, with the folder. Only one process at
// a time can have a log open: a file path.lock sees to that. The caller must
// Close the Log.
func Open(path string, o Options) (*Log, error) { return open(path, o, openFile) }

func open(path string, o Options, opener func(string) (file, error)) (*Log, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("audit log %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("audit log %s: %w", path, err)
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("audit log %s: %w", path, err)
	}
	l := &Log{
		o: o, lock: lock, w: newWriter(path, o, opener),
		unsaved: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	l.full.Store(o.Record == "full")
	l.always.Store(o.Sync == "always")
	if err := l.w.healthy(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	l.ended.Go(l.saveAll)
	l.ended.Go(l.tidyAll)
	return l, nil
}

// Record writes the line of a record. It returns once the record survives the
// death of the process, and with Options.Sync "always" that of the machine. It
// does not look at ctx. The end of a call that was carried out is written later if
// it cannot be now: before any other line, or when the log is closed.
func (l *Log) Record(_ context.Context, r *gate.Record) error {
	if r.Call == nil {
		return errors.New("audit: the record belongs to no call")
	}
	full := l.full.Load() || r.Full
	e := entry(r, full)
	err := l.append(&e)
	if err == nil && !full && r.Event == gate.Done && l.o.Beside != nil && l.o.Beside(r) {
		err = l.keepBeside(r)
	}
	if err != nil && carriedOut(r) {
		l.w.owe(e)
		l.due()
	}
	return err
}

// keepBeside keeps the documents of a record next to the log.
func (l *Log) keepBeside(r *gate.Record) error {
	for _, d := range []gate.Doc{r.Call.Args, r.Result} {
		text := d.Raw()
		if l.o.Hide != nil {
			if err := hideDocument(&text, l.o.Hide); err != nil {
				return fmt.Errorf("audit log %s: %w", l.w.path, err)
			}
		}
		if text != nil {
			l.o.Documents(d.Digest(), text)
		}
	}
	return nil
}

// Append writes the line of an event that is not a call. Log, Seq, Time and Prev are filled in;
// lines of event [Opened] are the log's own.
func (l *Log) Append(e Entry) error {
	if e.Event == "" || e.Event == Opened {
		return fmt.Errorf("audit log %s: an entry with event %q cannot be appended", l.w.path, e.Event)
	}
	return l.append(&e)
}

// bodies holds the buffers in which lines are made, outside of any lock.
var bodies = sync.Pool{New: func() any { return new(line) }}

func (l *Log) append(e *Entry) error {
	if l.o.Hide != nil {
		if err := e.hide(l.o.Hide); err != nil {
			return fmt.Errorf("audit log %s: %w", l.w.path, err)
		}
	}
	buf := bodies.Get().(*line)
	*buf = (*buf)[:0].body(e)
	seq, err := l.w.append(*buf)
	if cap(*buf) <= keepLine {
		bodies.Put(buf)
	}
	if err != nil {
		return err
	}
	if l.always.Load() {
		return l.save(seq)
	}
	l.due()
	return nil
}

// Change puts these options of o in place, for writing and keeping records: Record, Sync, MaxSize,
// Keep, Hold, HardMax, Strict, Rotate, MaxAge and Compress. It ignores the other options. It is a
// function because the methods of Log are part of what package gate/audit promises.
func Change(l *Log, o Options) error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	all := l.w.o
	all.Keep, all.Hold, all.HardMax, all.Strict = o.Keep, o.Hold, o.HardMax, o.Strict
	all.Rotate, all.MaxAge, all.Compress = o.Rotate, o.MaxAge, o.Compress
	all.Record, all.Sync, all.MaxSize = o.Record, o.Sync, o.MaxSize
	if err := all.check(); err != nil {
		return fmt.Errorf("audit log %s: %w", l.w.path, err)
	}
	l.w.o, l.w.at.looked, l.w.at.limit = all, time.Time{}, all.MaxSize
	l.full.Store(all.Record == "full")
	l.always.Store(all.Sync == "always")
	return nil
}

// due has what was written saved, and what is owed written.
func (l *Log) due() {
	select {
	case l.unsaved <- struct{}{}:
	default:
	}
}

// save returns when the records up to seq are on disk.
func (l *Log) save(seq uint64) error {
	l.synced.mu.Lock()
	defer l.synced.mu.Unlock()
	if l.synced.seq >= seq {
		return nil
	}
	upto, err := l.w.save()
	if err != nil {
		return err
	}
	l.synced.seq = upto
	return nil
}

// saveAll syncs in the background what is written, and writes what is owed, until the log
// is closed.
func (l *Log) saveAll() {
	for {
		after := syncAfter
		if l.w.owes() {
			after = retryAfter
			l.due()
		}
		select {
		case <-l.unsaved:
		case <-l.stop:
			return
		}
		select {
		case <-time.After(after):
		case <-l.stop: // Close syncs what is left
			return
		}
		if l.w.owes() {
			_ = l.w.healthy() // writes it
		}
		_, _ = l.w.save() // which says itself that it has failed
	}
}

// Healthy returns nil if records can be written, and otherwise why not. A log
// that has failed is tried again, so that one with no calls to record is found
// well when the disk is.
func (l *Log) Healthy() error { return l.w.healthy() }

// Warning says how full the log is, from 80 % on of what it may take while it holds
// records that are too young to be removed, and what happens then. "" is nothing to
// say.
func Warning(l *Log) string {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	s, err := l.w.stock()
	if err != nil {
		return fmt.Sprintf("%s: how full it is cannot be determined: %v", l.w.path, err)
	}
	what, part := s.fullest(l.w.o.MaxSize)
	if part < warnAt {
		return ""
	}
	then := "the oldest file is deleted"
	if l.w.o.Strict {
		then = "calls are refused"
	}
	return fmt.Sprintf("%s will have used %.0f %% of %s with its next file, and its records are too young to be deleted (audit.hold: %s). At 100 %%, %s. Raise audit.hard_max, lower audit.hold, or move the oldest files away",
		l.w.path, 100*part, what, l.w.o.Hold, then)
}

// Head is the last record that was written; zero if there is none. Kept elsewhere it shows
// later that nothing was cut off: see [VerifyFiles].
func (l *Log) Head() Head {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return Head{l.w.at.tip.seq, l.w.at.tip.hash}
}

// Close syncs and closes the log. Records after it are an error. It may be
// called again, and then does nothing.
func (l *Log) Close() (err error) {
	l.closing.Do(func() {
		close(l.stop)
		l.ended.Wait()
		err = errors.Join(l.w.close(), l.lock.Close())
	})
	return err
}
