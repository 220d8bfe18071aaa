package audit

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

const (
	defaultHold = 7 * 24 * time.Hour
	// warnAt is the part of the log's room from which on the operator is warned.
	warnAt = 0.8
	// lookAgain is how often a log that is full is looked at.
	lookAgain = time.Second
)

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

// checkRetention checks and completes the Options for old files.
func (o *Options) checkRetention() error {
	if o.Keep == 0 {
		o.Keep = 10
	}
	if o.Hold == 0 {
		o.Hold = defaultHold
	}
	most := int64(math.MaxInt64)
	if usual := float64(o.MaxSize) * float64(o.Keep); o.Keep > 0 && usual < math.MaxInt64/4 {
		most = o.MaxSize * int64(o.Keep)
		if o.HardMax == 0 {
			o.HardMax = 4 * most
		}
	}
	switch {
	case o.Rotate < 0 || o.MaxAge < 0:
		return fmt.Errorf("rotate is %s and max age %s; they must not be negative", o.Rotate, o.MaxAge)
	case o.MaxAge > 0 && o.MaxAge < o.Hold:
		return fmt.Errorf("max age is %s, but hold keeps records for %s", o.MaxAge, o.Hold)
	case o.HardMax == 0:
		o.HardMax = math.MaxInt64
	case o.HardMax < 0:
		return fmt.Errorf("hard max is %d bytes; it must not be negative", o.HardMax)
	case o.Keep > 0 && o.HardMax < most:
		return fmt.Errorf("hard max (%d bytes) is less than the %d bytes of all files (keep: %d files of max size %d): raise hard max, or lower keep or max size", o.HardMax, most, o.Keep, o.MaxSize)
	}
	return nil
}

// A stock is what there is of a log: the renamed files, the oldest first, and the
// one that grows.
type stock struct {
	w     *writer
	files []old
	bytes int64
}

// An old file is one that was renamed.
type old struct {
	path  string
	bytes int64
	last  time.Time // when it was written to
}

func (w *writer) stock() (s stock, err error) {
	names, err := rotated(w.path)
	if err != nil {
		return stock{}, err
	}
	s = stock{w: w, bytes: w.at.tip.size}
	for _, name := range names {
		info, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // somebody moved it away
		}
		if err != nil {
			return stock{}, err
		}
		s.files = append(s.files, old{name, info.Size(), info.ModTime()})
		s.bytes += info.Size()
	}
	return s, nil
}

// over reports whether there are more files than Keep.
func (s *stock) over() bool { return s.w.o.Keep > 0 && len(s.files) > s.w.o.Keep }

// expired reports whether the oldest file is older than any may be.
func (s *stock) expired() bool {
	return s.w.o.MaxAge > 0 && len(s.files) > 0 && time.Since(s.files[0].last) > s.w.o.MaxAge
}

// young reports whether the oldest file is to be held.
func (s *stock) young() bool { return time.Since(s.files[0].last) < s.w.o.Hold }

// fullest is the bound that the log will meet first, and which part of it is
// taken if the log gets more bytes; 0 if it holds nothing beyond Keep.
func (s *stock) fullest(more int64) (what string, part float64) {
	if !s.over() || !s.young() {
		return "", 0
	}
	what = fmt.Sprintf("audit.hard_max (%d KiB)", s.w.o.HardMax>>10)
	part = float64(s.bytes+more) / float64(s.w.o.HardMax)
	if disk, err := s.w.disk(filepath.Dir(s.w.path)); err == nil { // else only the size bounds it
		if taken := float64(s.bytes+more) / (float64(s.bytes) + float64(disk.Room())); taken > part {
			what, part = fmt.Sprintf("the log and what is free on its disk but for %d MiB", disk.Reserve()>>20), taken
		}
	}
	return what, part
}

// full reports whether there is no room for one file more.
func (s *stock) full() bool {
	_, part := s.fullest(s.w.o.MaxSize)
	return part > 1
}

// blocked returns why no line may be written, with Strict: there would have to go
// what is to be held.
func (w *writer) blocked() error {
	if !w.o.Strict {
		return nil
	}
	if w.at.full != nil && time.Since(w.at.looked) < lookAgain {
		return w.at.full
	}
	w.at.looked, w.at.full = time.Now(), nil
	s, err := w.stock()
	if err != nil {
		return fmt.Errorf("audit log %s: %w", w.path, err)
	}
	if what, _ := s.fullest(0); s.full() {
		w.at.full = fmt.Errorf("audit log %s: it is full: %s is taken with records younger than audit.hold (%s), and hold: strict removes none: "+
			"move the oldest files away, raise audit.hard_max or lower audit.hold", w.path, what, w.o.Hold)
	}
	return w.at.full
}

// retire removes files older than MaxAge, and those beyond Keep: of these those whose records are
// older than Hold, and if there is no room otherwise, younger ones. The next opened line names
// them.
func (w *writer) retire() error {
	s, err := w.stock()
	if err != nil {
		return err
	}
	for s.over() || s.expired() {
		young := s.young()
		if young && (w.o.Strict || !s.full()) {
			return nil
		}
		if err := os.Remove(s.files[0].path); err != nil {
			return err
		}
		name := filepath.Base(s.files[0].path)
		w.at.removed = append(w.at.removed, name)
		if young {
			what, _ := s.fullest(w.o.MaxSize)
			w.at.early = fmt.Errorf("records younger than audit.hold (%s) were removed: %s is taken", w.o.Hold, what)
			w.o.Log.Error("young audit records removed", "file", name, "error", w.at.early)
		}
		s.bytes -= s.files[0].bytes
		s.files = s.files[1:]
	}
	return nil
}
