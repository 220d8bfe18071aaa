package audit

import (
	"time"

	"github.com/wasmgate/wasmgate/internal/files"
)

// File is what a log needs of its file.
type File = file

// OpenOn opens a log whose files are opened by a test.
func OpenOn(path string, o Options, opener func(string) (File, error)) (*Log, error) {
	return open(path, o, opener)
}

// OpenFile opens a file as [Open] does.
func OpenFile(path string) (File, error) { return openFile(path) }

// SetRoom has a log believe that its disk has room for so many bytes beyond the reserve.
func (l *Log) SetRoom(bytes uint64) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	d := files.Disk{Size: 1 << 40}
	d.Free = d.Reserve() + bytes
	l.w.disk = func(string) (files.Disk, error) { return d, nil }
}

// Tidy does what is due now.
func (l *Log) Tidy() { l.tidy() }

// SetBegun has a log believe that its file begins with a record of then.
func (l *Log) SetBegun(then time.Time) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.at.begun = then
}

// Waiting returns how many lines wait for the one that is written.
func (l *Log) Waiting() int {
	l.w.joining.Lock()
	defer l.w.joining.Unlock()
	return len(l.w.joined)
}
