package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/wasmgate/wasmgate/internal/files"
)

// A cache keeps manifests and layers by their digests, a file each. Files appear
// whole, by renaming, and are verified whenever they are read, so processes need
// no lock, a file may be removed at any time, and one that was damaged or changed
// is as good as none. For the same reason nothing is synced.
type cache struct {
	dir string // empty: nothing is kept
	log *slog.Logger
}

// prepare makes the directory. It refuses one that others may look into: layers
// may come from a private registry.
func (c cache) prepare() error {
	if c.dir == "" {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the cache folder: %w", err)
	}
	info, err := os.Stat(c.dir)
	if err != nil {
		return fmt.Errorf("cannot open the cache folder: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 { // Windows has no such bits
		return fmt.Errorf("other users can read the cache folder %s (mode %o): run chmod 700 on it, or choose another folder", c.dir, info.Mode().Perm())
	}
	return nil
}

// path is the file of d, which was checked to be a SHA-256 digest.
func (c cache) path(d digest.Digest) string {
	return filepath.Join(c.dir, "sha256-"+d.Encoded())
}

// read returns what d stands for, or nil if it has to be fetched.
func (c cache) read(d digest.Digest, limit int64) []byte {
	if c.dir == "" {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(c.path(d), now, now) // it is used: as far as the file system takes it
	b, err := readFile(c.path(d), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && digest.FromBytes(b) != d {
		err = errors.New("the file was changed: its digest differs from the one in its name")
	}
	if err != nil {
		c.log.Warn("cached artifact unusable, fetching it again", "path", c.path(d), "error", err)
		return nil
	}
	return b
}

// write keeps b, which was verified. A cache that cannot be written costs time
// only, so that is no error of the fetch.
func (c cache) write(d digest.Digest, b []byte) {
	if c.dir == "" {
		return
	}
	if err := files.Replace(c.path(d), b, 0o600); err != nil {
		c.log.Warn("artifact not cached", "path", c.path(d), "error", err)
		return
	}
	c.prune(time.Now(), maxKept)
}

const (
	// maxKept is how many bytes of artifacts are kept, maxAge for how long one that no
	// start of a program has read.
	maxKept = 2 << 30
	maxAge  = 90 * 24 * time.Hour
)

// prune removes what was not used for long, and of what is too much that which was not
// used for the longest. What is removed is fetched again.
func (c cache) prune(now time.Time, most int64) {
	entries, _ := os.ReadDir(c.dir)
	var all []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && strings.HasPrefix(e.Name(), "sha256-") {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) }) // the last used first
	var size int64
	for i, info := range all {
		if size += info.Size(); now.Sub(info.ModTime()) > maxAge || i > 0 && size > most {
			_ = os.Remove(filepath.Join(c.dir, info.Name()))
		}
	}
}

// readFile reads a regular file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // reading a pipe or a device might never end
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are allowed", path, info.Size(), limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, info.Size()+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(b)) != info.Size() {
		return nil, fmt.Errorf("%s was changed while it was read", path)
	}
	return b, nil
}
