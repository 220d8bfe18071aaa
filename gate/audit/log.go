package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// Options configure a [Log].
type Options struct {
	Node     string // name of this gateway; required
	Boot     string // of this start of it; "" makes a random one
	Version  string // of the program, for the opened line
	Snapshot string // of the configuration, for the opened line
	// MaxSize is the size in bytes at which a file is closed and renamed. Zero
	// means 100 MiB; negative is an error.
	MaxSize int64
	// Keep is how many renamed files are kept. Zero means 10, negative all.
	Keep int
	// Hold is how old the newest record of a file must be before the file is removed. Until then
	// the log grows beyond Keep, up to HardMax, or until 5 % of the disk, or 1 GiB if that is less,
	// are free; then the oldest file goes all the same, which an opened line records. Zero means 7
	// days; with a negative one only Keep decides.
	Hold time.Duration
	// HardMax is how many bytes all files together may take while there are more than
	// Keep. Zero means four times MaxSize times Keep.
	HardMax int64
	// Strict refuses records, and so calls, where a file would have to go that is to be
	// held.
	Strict bool
	// Rotate is the age of its first record at which a file that has others is renamed, whatever
	// its size. Zero means that only size counts.
	Rotate time.Duration
	// MaxAge is how old the newest record of a file may become before the file is removed,
	// however few there are. Zero means that age removes none. It is not below Hold.
	MaxAge time.Duration
	// Compress packs renamed files, but the newest, into files that end in .gz.
	Compress bool
	// Record is "digest", which "" means too, or "full": arguments and results
	// themselves are recorded.
	Record string
	// Beside reports whether to keep those documents of a record that are not recorded themselves.
	// Then they go to Documents, by their digests and without what Hide takes out of them, once the
	// record of a call's end is written. Documents must not block, and does not change text. Both
	// or neither are nil.
	Beside    func(r *gate.Record) bool
	Documents func(digest string, text []byte)
	// Sync is "group", which "" means too: a file is synced in the background,
	// 100 ms after a record at the latest; or "always": a record is on disk when
	// Record returns, and records that are written at once share a sync.
	Sync string
	// Hide takes out of a text what must not be in a log, such as secrets; nil leaves all. Name is
	// what the text is called where it is, see [doc.Leaf.Name]. Digests stay those of the documents
	// as they were.
	Hide func(name, text string) string
	Log  *slog.Logger // nil discards
}

func (o *Options) check() error {
	switch {
	case o.Node == "":
		return errors.New("no node is named")
	case o.MaxSize < 0:
		return fmt.Errorf("max size is %d bytes; it must not be negative", o.MaxSize)
	case o.Record != "" && o.Record != "digest" && o.Record != "full":
		return fmt.Errorf("record is %q; expected digest or full", o.Record)
	case o.Sync != "" && o.Sync != "group" && o.Sync != "always":
		return fmt.Errorf("sync is %q; expected group or always", o.Sync)
	}
	if o.Boot == "" {
		o.Boot = rand.Text()[:8]
	}
	if o.MaxSize == 0 {
		o.MaxSize = 100 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o.checkRetention()
}

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
