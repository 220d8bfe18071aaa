package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// firstWindow is how many bytes of a file's end are read at first to find its
// last record; most are shorter by far.
const firstWindow = 64 << 10

// file is what a writer needs of an *os.File.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Seeker
	io.Closer
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

func openFile(path string) (file, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// A tip is the end of what is written in a file.
type tip struct {
	size int64
	seq  uint64
	hash string // of the last line, in hex; "" if there is none
	torn int64  // bytes after size that belong to no whole line
}

// readTip finds the end of a log file, reading no more of it than needed. What
// the death of a process can leave there, a line without its end or one that is
// no record, counts as torn; anything else that is no record is an error, so
// that no other file is mistaken for a log and cut.
func readTip(f file) (tip, error) {
	info, err := f.Stat()
	if err != nil {
		return tip{}, err
	}
	size := info.Size()
	for window := int64(firstWindow); ; window *= 8 {
		b := make([]byte, min(window, size))
		if _, err := f.ReadAt(b, size-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
			return tip{}, err
		}
		whole := int64(len(b)) == size
		t, found := findTip(b, whole)
		if !found && !whole && window <= 2*maxLine {
			continue
		}
		rest := b[int64(len(b))-t.torn:]
		if !found || !ours(rest) {
			return tip{}, fmt.Errorf("it does not end with an audit record: move the file away or choose another audit.path")
		}
		t.size = size - t.torn
		return t, nil
	}
}

// findTip finds the last record in the end of a file, or in the whole of it. It
// passes over one line at most.
func findTip(b []byte, whole bool) (tip, bool) {
	end := bytes.LastIndexByte(b, '\n') + 1
	for range 2 {
		if end == 0 {
			return tip{torn: int64(len(b))}, whole
		}
		start := bytes.LastIndexByte(b[:end-1], '\n') + 1
		if start == 0 && !whole {
			return tip{}, false
		}
		var e struct{ Seq uint64 }
		if json.Unmarshal(b[start:end-1], &e) == nil && e.Seq > 0 {
			hash := sha256.Sum256(b[start : end-1])
			return tip{seq: e.Seq, hash: hex.EncodeToString(hash[:]), torn: int64(len(b) - end)}, true
		}
		if end < len(b) {
			break
		}
		end = start
	}
	return tip{}, false
}

// ours tells whether bytes can be the beginning of a line of a log. The death of
// a machine can leave zeros in the place of what was not synced.
func ours(b []byte) bool {
	begin := []byte(`{"log":"`)
	return bytes.HasPrefix(b, begin) || bytes.HasPrefix(begin, b) || b[0] == 0
}
