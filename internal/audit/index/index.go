package index

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate/audit"
)

const (
	// lookEvery is how often the log is looked at once all of it is indexed.
	lookEvery = 250 * time.Millisecond
	// atOnce is how many records are indexed before a waiting query gets a turn.
	atOnce = 2000
	// catchUp is how long a question waits for the newest records to be indexed.
	catchUp = 200 * time.Millisecond
	// retryAfter is how long after a failure a file is tried again.
	retryAfter = time.Minute
	// maxSkip is how many bytes are read to come forward; farther away a file is opened again.
	maxSkip = 1 << 20
	// maxLine is how many bytes of a line are read: only documents come after that.
	maxLine = 1 << 20
)

// An Index finds records of one log. Use it from several goroutines.
type Index struct {
	log, dir string
	rows     int // of a segment at most

	mu    sync.Mutex
	files []*file // the newest first
}

// A file of the log, and how far it is indexed.
type file struct {
	key  string // the digest of its first line
	name string
	info os.FileInfo
	full bool // it grows no more
	done bool // all of it is indexed
	err  error
	when time.Time // of err

	segments []*segment // the oldest first
	made     *table     // the rows that are in no segment yet; may be nil
	at       int64      // of its text is indexed
	reader   *reader    // open at at; may be nil
}

// New returns the index of the log at path that is kept in a folder. An existing index is used as far
// as it is whole. Nothing is read or made before [Index.Run], or a query.
func New(dir, path string) *Index { return &Index{log: path, dir: dir, rows: maxRows} }

// Run keeps the index up to date until ctx ends.
func (x *Index) Run(ctx context.Context) {
	for ctx.Err() == nil {
		x.mu.Lock()
		more := x.step(true)
		x.mu.Unlock()
		if more {
			continue
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.files {
		f.close()
	}
}

// step indexes a few records: the newest ones of the file that grows, else, if old ones are
// wanted too, of the newest file that is not done. It reports whether there are more. Callers
// hold mu, here and below.
func (x *Index) step(old bool) (more bool) {
	x.refresh()
	for i, f := range x.files {
		if i > 0 && !old {
			return false
		}
		if f.err != nil && time.Since(f.when) > retryAfter {
			x.forget(f)
		}
		if f.done || f.err != nil {
			continue
		}
		n, err := x.advance(f)
		if err != nil {
			f.err, f.when = err, time.Now()
			f.close()
		}
		if n > 0 || f.full && err == nil {
			return true
		}
	}
	return false
}

// advance indexes up to [atOnce] records of a file.
func (x *Index) advance(f *file) (n int, err error) {
	if f.reader == nil {
		if f.reader, err = openReader(f.name, f.at); err != nil {
			return 0, err
		}
	}
	var r row
	for ; n < atOnce; n++ {
		line, size, err := f.reader.next()
		if errors.Is(err, io.EOF) {
			if f.full {
				f.done = true
				f.close()
				return n, x.seal(f)
			}
			return n, f.reader.back()
		}
		if err != nil {
			return n, err
		}
		at := f.at
		f.at += size
		if err := r.parse(line); err != nil {
			continue // damage, which verify reports
		}
		if f.made != nil && f.made.full(at, x.rows) {
			if err := x.seal(f); err != nil {
				return n, err
			}
		}
		if f.made == nil {
			f.made = newTable(f.key, at)
		}
		f.made.add(&r, at)
		f.made.To = f.at
	}
	return n, nil
}

// seal makes a segment of the rows that are in none.
func (x *Index) seal(f *file) error {
	if f.made == nil {
		return nil
	}
	if err := os.MkdirAll(x.dir, 0o700); err != nil {
		return fmt.Errorf("the index cannot be written: %w", err)
	}
	name := filepath.Join(x.dir, fmt.Sprintf("%s-%06d", f.key, len(f.segments)))
	if err := f.made.write(name); err != nil {
		return fmt.Errorf("the index cannot be written: %w", err)
	}
	s, err := openSegment(name)
	if err != nil {
		return err
	}
	f.segments, f.made = append(f.segments, s), nil
	return nil
}

// forget begins the index of a file anew.
func (x *Index) forget(f *file) {
	f.close()
	for _, s := range f.segments {
		os.Remove(s.name)
	}
	*f = file{key: f.key, name: f.name, info: f.info, full: f.full}
}

// refresh looks which files the log has.
func (x *Index) refresh() {
	names, err := audit.Files(x.log)
	if err != nil {
		names = nil
	}
	slices.Reverse(names)
	if x.same(names) {
		return
	}
	var now []*file
	for _, name := range names {
		f, err := x.file(name)
		if err != nil {
			continue // it was renamed or packed since, or has no line yet: the next look finds it
		}
		f.full = name != x.log
		now = append(now, f)
	}
	first := x.files == nil
	for _, f := range x.files {
		if !slices.Contains(now, f) {
			x.forget(f)
		}
	}
	x.files = now
	if first {
		x.sweep()
	}
}

// same reports whether the files are those that are known, by the names that are known.
func (x *Index) same(names []string) bool {
	if len(names) != len(x.files) || len(names) == 0 {
		return false
	}
	for i, f := range x.files {
		if f.name != names[i] {
			return false
		}
	}
	info, err := os.Stat(names[0])
	return err == nil && os.SameFile(info, x.files[0].info) && info.Size() >= x.files[0].at
}

// file returns what is known of a file of the log.
func (x *Index) file(name string) (*file, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	key, err := keyOf(name)
	if err != nil {
		return nil, err
	}
	for _, f := range x.files {
		if f.key != key {
			continue
		}
		if !strings.HasSuffix(name, packed) && info.Size() < f.at { // it was cut
			x.forget(f)
		}
		f.name, f.info = name, info
		return f, nil
	}
	f := &file{key: key, name: name, info: info}
	x.adopt(f)
	return f, nil
}

// keyOf returns the digest of a file's first line, by which it is known under any name.
func keyOf(name string) (string, error) {
	r, err := openReader(name, 0)
	if err != nil {
		return "", err
	}
	defer r.Close()
	line, _, err := r.next()
	if err != nil {
		return "", err
	}
	d := sha256.Sum256(line)
	return hex.EncodeToString(d[:16]), nil
}

// adopt takes the segments that an earlier process has made of a file, as far as they follow
// one another.
func (x *Index) adopt(f *file) {
	for {
		name := filepath.Join(x.dir, fmt.Sprintf("%s-%06d", f.key, len(f.segments)))
		s, err := openSegment(name)
		if err != nil || s.File != f.key || len(f.segments) > 0 && s.From < f.at || !strings.HasSuffix(f.name, packed) && s.To > f.info.Size() {
			return
		}
		f.segments, f.at = append(f.segments, s), s.To
	}
}

// sweep removes segments of files that the log has no more, and what is not used of others.
func (x *Index) sweep() {
	used := make(map[string]bool)
	for _, f := range x.files {
		for _, s := range f.segments {
			used[s.name] = true
		}
	}
	list, _ := os.ReadDir(x.dir) // what is left is no harm
	for _, e := range list {
		if name := filepath.Join(x.dir, e.Name()); !used[name] {
			os.Remove(name)
		}
	}
}

func (f *file) close() {
	if f.reader != nil {
		f.reader.Close()
		f.reader = nil
	}
}

// Progress is how much of the log is indexed.
type Progress struct {
	Part     float64  `json:"part"`               // of its bytes, from 0 to 1
	Problems []string `json:"problems,omitempty"` // files that cannot be indexed, and why
}

// Done reports whether all of the log can be found.
func (p Progress) Done() bool { return p.Part >= 1 && len(p.Problems) == 0 }

func (x *Index) progress() (p Progress) {
	var all, have float64
	for _, f := range x.files {
		size := float64(f.info.Size())
		if info, err := os.Stat(f.name); err == nil {
			size = float64(info.Size())
		}
		all += size
		switch {
		case f.err != nil:
			p.Problems = append(p.Problems, fmt.Sprintf("%s: %v", filepath.Base(f.name), f.err))
		case f.done:
			have += size
		default:
			have += min(size, float64(f.at)) // of a packed one more than it is, until it is done
		}
	}
	if p.Part = 1; all > 0 && have < all {
		p.Part = have / all
	}
	return p
}

// A reader reads lines of a file of the log.
type reader struct {
	io.ReadCloser
	lines *bufio.Reader
	buf   []byte
	at    int64
	name  string
}

// packed ends the names of files that the log has compressed.
const packed = ".gz"

func openReader(name string, at int64) (*reader, error) {
	text, err := audit.OpenText(name, at)
	if err != nil {
		return nil, err
	}
	return &reader{text, bufio.NewReaderSize(text, 64<<10), nil, at, name}, nil
}

// next returns a line, or the beginning of a long one, and how many bytes the whole has with its
// newline. At the end it returns io.EOF; what is left then is no line yet.
func (r *reader) next() (line []byte, size int64, err error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.lines.ReadSlice('\n')
		size += int64(len(part))
		switch {
		case err == nil && len(r.buf) == 0:
			r.at += size
			return part[:len(part)-1], size, nil
		case err == nil:
			r.at += size
			if room := maxLine - len(r.buf); room > 0 {
				r.buf = append(r.buf, part[:min(room, len(part)-1)]...)
			}
			return r.buf, size, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, size, err
		}
		if room := maxLine - len(r.buf); room > 0 {
			r.buf = append(r.buf, part[:min(room, len(part))]...)
		}
	}
}

// back goes to where the last whole line ended: the next may have been half written.
func (r *reader) back() error {
	if s, ok := r.ReadCloser.(io.Seeker); ok {
		_, err := s.Seek(r.at, io.SeekStart)
		r.lines.Reset(r.ReadCloser)
		return err
	}
	return nil
}

// seek returns a reader of a file at an offset: the one that there is, if it can go there.
func seek(name string, r *reader, at int64) (*reader, error) {
	if r != nil && r.at <= at && at-r.at < maxSkip {
		n, err := r.lines.Discard(int(at - r.at))
		r.at += int64(n)
		return r, err
	}
	if r != nil {
		if s, ok := r.ReadCloser.(io.Seeker); ok {
			_, err := s.Seek(at, io.SeekStart)
			r.lines.Reset(r.ReadCloser)
			r.at = at
			return r, err
		}
		r.Close()
	}
	return openReader(name, at)
}

// whole returns a line of any length.
func (r *reader) whole() ([]byte, error) {
	line, err := r.lines.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	r.at += int64(len(line))
	return line[:len(line)-1], nil
}
