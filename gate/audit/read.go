package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	pollEvery = 250 * time.Millisecond // while following
	// maxListings bounds how often the files are listed again because one was
	// renamed between two looks.
	maxListings = 100
)

// A Filter chooses records. Zero fields choose all.
type Filter struct {
	Denied    bool      // refused calls: those with a code that begins with refused_
	Call      string    // id: the records of a call, and of what was asked for on its behalf
	Tool      string    // a tool's name, or a pattern as of [path.Match]
	Principal string    // id
	Session   string    // id
	Since     time.Time // at this time or later
	After     uint64    // with a greater number
	// Choose is a further condition, for what the other fields cannot say.
	Choose func(*Entry) bool
	// Last keeps only so many of the records that are there already; 0 keeps all.
	Last int
	// Follow waits for records that are yet to be written, until ctx ends.
	Follow bool
}

func (f *Filter) chooses(e *Entry) bool {
	tool := f.Tool == ""
	if !tool && e.Tool != "" {
		tool, _ = path.Match(f.Tool, e.Tool)
	}
	return tool &&
		(!f.Denied || strings.HasPrefix(e.Code, "refused_")) &&
		(f.Call == "" || f.Call == e.ID || f.Call == e.Parent) &&
		(f.Principal == "" || f.Principal == e.Principal) &&
		(f.Session == "" || f.Session == e.Session) &&
		(f.After == 0 || e.Seq > f.After) &&
		(f.Since.IsZero() || !e.Time.Before(f.Since)) &&
		(f.Choose == nil || f.Choose(e))
}

// Read returns the chosen records of the log at path, over all its files, in
// the order in which they were written. The log may be growing and its files be
// renamed meanwhile. It does not verify the chain. A line that is no record is
// yielded as a [*ChainError], with an Entry that has only Raw, and reading goes
// on; after any other error it ends. A line without its end is no record yet.
func Read(ctx context.Context, path string, f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := read(ctx, path, f, yield); err != nil {
			yield(Entry{}, err)
		}
	}
}

// read yields what it finds and returns the error that ends it.
func read(ctx context.Context, name string, f Filter, yield func(Entry, error) bool) error {
	if _, err := path.Match(f.Tool, ""); err != nil {
		return fmt.Errorf("tool pattern %q: %w", f.Tool, err)
	}
	r := reader{path: name}
	defer r.close()
	if err := r.begin(f); err != nil {
		return err
	}
	var last []Entry // kept back until the end is reached, if only the last are wanted
	for {
		e, err := r.next()
		var damage *ChainError
		switch {
		case ctx.Err() != nil:
			if f.Follow {
				return nil
			}
			return ctx.Err()
		case errors.Is(err, io.EOF):
			for _, e := range last {
				if !yield(e, nil) {
					return nil
				}
			}
			last, f.Last = nil, 0
			if !f.Follow {
				return nil
			}
			select {
			case <-ctx.Done():
			case <-time.After(pollEvery):
			}
		case errors.As(err, &damage):
			if !yield(e, err) {
				return nil
			}
		case err != nil:
			return err
		case !f.chooses(&e):
		case f.Last > 0:
			e.Raw = bytes.Clone(e.Raw)
			if last = append(last, e); len(last) > f.Last {
				last = last[1:]
			}
		default:
			e.Raw = bytes.Clone(e.Raw)
			if !yield(e, nil) {
				return nil
			}
		}
	}
}

// reader reads a log file after file, as they are renamed.
type reader struct {
	path  string
	file  *logFile
	seq   uint64      // of the last record
	info  os.FileInfo // of file, to know it again under another name
	lines *lines
	line  int
	full  bool // the file has been renamed: it grows no more
}

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
	}
}

// begin opens the first file that can have a record that f chooses.
func (r *reader) begin(f Filter) error {
	since := f.Since
	return r.open(func(names []string) int {
		if f.After > 0 {
			return max(0, after(names, f.After)-1)
		}
		at := slices.IndexFunc(names, func(name string) bool {
			info, err := os.Stat(name)
			return err == nil && !info.ModTime().Before(since)
		})
		if at < 0 {
			return len(names) - 1
		}
		return at
	})
}

// advance opens the file that follows a full one, or returns io.EOF if there is
// none yet.
func (r *reader) advance() error {
	err := r.open(func(names []string) int {
		at := slices.IndexFunc(names, func(name string) bool {
			info, err := os.Stat(name)
			return err == nil && os.SameFile(info, r.info)
		})
		if at < 0 { // it was packed, or removed
			return after(names, r.seq)
		}
		return at + 1
	})
	if errors.Is(err, io.EOF) {
		return r.wait()
	}
	return err
}

// after returns the first file whose records all have greater numbers.
func after(names []string, seq uint64) int {
	at := slices.IndexFunc(names, func(name string) bool {
		first, _, err := begins(name)
		return err == nil && first > seq
	})
	if at < 0 {
		return len(names)
	}
	return at
}

// open opens the file that is chosen from the list of all; -1 chooses none, and
// one beyond the last is io.EOF. Files may be renamed at any time: if the list
// is another one afterwards, so may be the file behind the name.
func (r *reader) open(choose func(names []string) int) error {
	for range maxListings {
		names, err := Files(r.path)
		if err != nil {
			return err
		}
		at := choose(names)
		if at < 0 {
			continue
		}
		if at == len(names) {
			return io.EOF
		}
		f, err := openLog(names[at])
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		info, err := f.Stat()
		after, lerr := Files(r.path)
		if err != nil || lerr != nil || names[at] == r.path && !slices.Equal(names, after) {
			f.Close()
			continue
		}
		r.close()
		*r = reader{path: r.path, file: f, info: info, lines: newLines(f.text), full: f.packed, seq: r.seq}
		return nil
	}
	return fmt.Errorf("audit log %s: its files were removed or renamed while it was read: begin again", r.path)
}

// next returns the next record; its Raw is valid until the call after. The error
// is io.EOF when there is none yet.
func (r *reader) next() (Entry, error) {
	for {
		b, err := r.lines.next()
		if errors.Is(err, io.EOF) {
			if err := r.turn(); err != nil {
				return Entry{}, err
			}
			continue
		}
		if err != nil && !errors.Is(err, errTooLong) {
			return Entry{}, err
		}
		r.line++
		e := Entry{Raw: b}
		if err == nil {
			err = json.Unmarshal(b, &e)
		}
		if err != nil {
			return Entry{Raw: bytes.Clone(b)}, &ChainError{r.file.Name(), r.line, err.Error()}
		}
		r.seq = e.Seq
		return e, nil
	}
}

// turn is for the end of the file: it sees to it that there can be more to read,
// or returns io.EOF.
func (r *reader) turn() error {
	if r.full {
		return r.advance()
	}
	info, err := os.Stat(r.path)
	if err == nil && os.SameFile(info, r.info) {
		return r.wait()
	}
	// It has been renamed, and may have grown since its end was met.
	r.full = true
	return r.again()
}

// again goes back to where the last whole line ended: what follows may have been
// half written, and may have been cut since.
func (r *reader) again() error {
	if r.file.packed {
		return nil
	}
	_, err := r.file.Seek(r.lines.off, io.SeekStart)
	r.lines.r.Reset(r.file)
	return err
}

// wait returns io.EOF, and leaves the reader where it can go on.
func (r *reader) wait() error {
	if err := r.again(); err != nil {
		return err
	}
	return io.EOF
}
