package audit

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// tidyEvery is how often a log is looked at in which nothing may happen.
	tidyEvery = time.Minute
)

// tidyAll rotates, removes and packs files when it is time, until the log is closed.
func (l *Log) tidyAll() {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.tidy()
		case <-l.stop:
			return
		}
	}
}

// tidy does the part of that work that is due.
func (l *Log) tidy() {
	for _, name := range l.w.tidy() {
		if err := l.pack(name); err != nil {
			l.o.Log.Warn("old audit log not compressed", "file", name, "error", err)
			return
		}
	}
}

// tidy rotates the file if it is old, removes those that have expired, and returns those to
// be packed: all renamed ones but the newest, which a process that starts reads the end of.
func (w *writer) tidy() (pack []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at.file != nil && w.old() && w.blocked() == nil {
		w.rotate()
	}
	if err := w.retire(); err != nil {
		w.o.Log.Warn("old audit log not removed", "path", w.path, "error", err)
	}
	names, err := rotated(w.path)
	if err != nil || !w.o.Compress || len(names) == 0 {
		return nil
	}
	for _, name := range names[:len(names)-1] {
		if !strings.HasSuffix(name, packedExt) {
			pack = append(pack, name)
		}
	}
	return pack
}

// errClosing says that the log is being closed.
var errClosing = errors.New("the log is being closed")

// pack replaces a renamed file by a compressed one. The compressed file is whole before the other
// is removed. So a process that dies leaves both at worst, and the compressed one counts.
func (l *Log) pack(name string) error {
	part := name + packedExt + ".part"
	defer os.Remove(part)
	if err := l.packInto(part, name); errors.Is(err, errClosing) {
		return nil // the next process does it
	} else if err != nil {
		return err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if _, err := os.Stat(name); err != nil {
		return nil // it was removed meanwhile
	}
	if err := os.Rename(part, name+packedExt); err != nil {
		return err
	}
	if err := syncFolder(name); err != nil {
		return err
	}
	return os.Remove(name)
}

func (l *Log) packInto(part, name string) (err error) {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	to, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close(), os.Chtimes(part, info.ModTime(), info.ModTime())) }()
	return errors.Join(writePacked(to, &until{from, l.stop}, filepath.Base(name), info.ModTime()), to.Sync())
}

// until reads until the log is closed.
type until struct {
	io.Reader
	stop <-chan struct{}
}

func (u *until) Read(b []byte) (int, error) {
	select {
	case <-u.stop:
		return 0, errClosing
	default:
		return u.Reader.Read(b)
	}
}
