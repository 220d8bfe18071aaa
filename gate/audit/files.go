package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// firstWindow is how many bytes of a file's end are read at first to find its
// last record; most are shorter by far.
const firstWindow = 64 << 10

func openFile(path string) (file, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// Files returns the files of the log at path that exist, the oldest first.
func Files(path string) ([]string, error) {
	names, err := rotated(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err == nil {
		names = append(names, path)
	} else if len(names) == 0 { // perhaps it was renamed since
		if names, err = rotated(path); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, &os.PathError{Op: "find audit log", Path: path, Err: os.ErrNotExist}
	}
	return names, nil
}

// rotated returns the renamed files of a log, the oldest first.
func rotated(path string) ([]string, error) {
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, one := range list {
		if name := filepath.Join(filepath.Dir(path), one.Name()); number(path, name) > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(number(path, a)-number(path, b), strings.Compare(a, b)) })
	return slices.CompactFunc(names, func(a, b string) bool { return number(path, a) == number(path, b) }), nil // one that is being packed is there twice
}

// numbered returns the name of the nth renamed file.
func numbered(path string, n int) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s-%06d%s", strings.TrimSuffix(path, ext), n, ext)
}

// number returns the number of a renamed file, packed or not, or 0 if it is none.
func number(path, name string) int {
	ext, name := filepath.Ext(path), strings.TrimSuffix(name, packedExt)
	digits, ok := strings.CutPrefix(filepath.Base(name), strings.TrimSuffix(filepath.Base(path), ext)+"-")
	n, err := strconv.Atoi(strings.TrimSuffix(digits, ext))
	if !ok || err != nil || n <= 0 || filepath.Base(numbered(path, n)) != filepath.Base(name) {
		return 0
	}
	return n
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
