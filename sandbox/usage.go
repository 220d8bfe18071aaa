package sandbox

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

// usages are how many bytes each module has added to each folder, over all calls.
// They are kept in a file between processes.
type usages struct {
	path string // "" keeps them in memory
	log  *slog.Logger

	mu    sync.Mutex
	by    map[string]map[string]*wasi.Usage // by module and folder
	bytes map[string]map[string]int64       // as the file has them
	later *time.Timer                       // will save; nil if nothing has changed
}

// openUsages reads the file, if there is one.
func openUsages(path string, log *slog.Logger) (*usages, error) {
	u := &usages{path: path, log: log, by: map[string]map[string]*wasi.Usage{}, bytes: map[string]map[string]int64{}}
	if path == "" {
		return u, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return u, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &u.bytes)
	}
	if u.bytes == nil { // the file says null
		u.bytes = map[string]map[string]int64{}
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: read what modules have written to files: %w; to start at zero again, remove %s", err, path)
	}
	return u, nil
}

// of returns what a module has added to a folder.
func (u *usages) of(module, folder string) *wasi.Usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	if one := u.by[module][folder]; one != nil {
		return one
	}
	if u.by[module] == nil {
		u.by[module] = map[string]*wasi.Usage{}
	}
	var told time.Time
	one := &wasi.Usage{
		Added:   u.bytes[module][folder],
		Changed: func(bytes int64) { u.changed(module, folder, bytes) },
		Full: func(limit int64) {
			if time.Since(told) > tellAgain {
				told = time.Now()
				u.log.Warn("a module may not write more to a folder", "module", module, "folder", folder, "limit", limit, "key", "limits.files_bytes")
			}
		},
	}
	u.by[module][folder] = one
	return one
}

// changed sees to it that the usages are saved soon.
func (u *usages) changed(module, folder string, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes[module] == nil {
		u.bytes[module] = map[string]int64{}
	}
	u.bytes[module][folder] = bytes
	if u.path != "" && u.later == nil {
		u.later = time.AfterFunc(saveAfter, func() {
			if err := u.save(); err != nil {
				u.log.Error("what modules have written to files is not saved", "error", err)
			}
		})
	}
}

// save writes the file, if anything has changed.
func (u *usages) save() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.later == nil {
		return nil
	}
	u.later.Stop()
	u.later = nil
	b, err := json.Marshal(u.bytes)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(u.path), 0o700); err != nil {
		return err
	}
	next := u.path + ".new"
	if err := os.WriteFile(next, b, 0o600); err != nil {
		return err
	}
	return os.Rename(next, u.path)
}
