package audit

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// packedExt ends the names of files that were compressed (RFC 1952).
const packedExt = ".gz"

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

// A logFile is a file of a log, open to be read, whether it is packed or not.
type logFile struct {
	*os.File
	text   io.Reader // its lines
	packed bool
}

func openLog(name string) (*logFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(name, packedExt) {
		return &logFile{File: f, text: f}, nil
	}
	text, err := gzip.NewReader(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &logFile{File: f, text: text, packed: true}, nil
}
