package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// saveAfter is how long a change of what modules have written waits to be saved: what
// the death of the process can cost.
const saveAfter = time.Second

// tellAgain is how often the log has that a folder is full.
const tellAgain = time.Minute

// Folders are the bytes that each module has added to each folder. They may be used from several
// goroutines.
type Folders struct {
	path string // "" keeps them in memory
	log  *slog.Logger

	mu    sync.Mutex
	by    map[string]map[string]*wasi.Usage // by module and folder
	bytes map[string]map[string]int64       // as the file has them
	later *time.Timer                       // will save; nil if nothing has changed
}

// Open reads the file, if there is one; an empty path keeps nothing. The log has which folders are full.
func Open(path string, log *slog.Logger) (*Folders, error) {
	f := &Folders{path: path, log: log, by: map[string]map[string]*wasi.Usage{}, bytes: map[string]map[string]int64{}}
	if path == "" {
		return f, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &f.bytes)
	}
	if f.bytes == nil { // the file says null
		f.bytes = map[string]map[string]int64{}
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: read what modules have written to files: %w; to start at zero again, remove %s", err, path)
	}
	return f, nil
}

// Usage returns what a module has added to a folder.
func (f *Folders) Usage(module, folder string) *wasi.Usage {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.by[module][folder]; one != nil {
		return one
	}
	if f.by[module] == nil {
		f.by[module] = map[string]*wasi.Usage{}
	}
	var told time.Time
	one := &wasi.Usage{
		Added:   f.bytes[module][folder],
		Changed: func(bytes int64) { f.changed(module, folder, bytes) },
		Full: func(limit int64) {
			if time.Since(told) > tellAgain {
				told = time.Now()
				f.log.Warn("a module may not write more to a folder", "module", module, "folder", folder, "limit", limit, "key", "limits.files_bytes")
			}
		},
	}
	f.by[module][folder] = one
	return one
}

// changed sees to it that the usages are saved soon.
func (f *Folders) changed(module, folder string, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes[module] == nil {
		f.bytes[module] = map[string]int64{}
	}
	f.bytes[module][folder] = bytes
	if f.path != "" && f.later == nil {
		f.later = time.AfterFunc(saveAfter, func() {
			if err := f.Save(); err != nil {
				f.log.Error("what modules have written to files is not saved", "error", err)
			}
		})
	}
}

// Save writes the file, if anything has changed.
func (f *Folders) Save() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.later == nil {
		return nil
	}
	f.later.Stop()
	f.later = nil
	b, err := json.Marshal(f.bytes)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	next := f.path + ".new"
	if err := os.WriteFile(next, b, 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.path)
}
