package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// warnAt is the part of the log's room from which on the operator is warned.
	warnAt = 0.8
	// lookAgain is how often a log that is full is looked at.
	lookAgain = time.Second
)

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
