package wasi

import (
	"path/filepath"
	"sync"
)

// held are the regular files that guests have open, in all calls of all modules: the
// bytes of a file without a name stay on the disk until the last of them closes it.
var held = heldFiles{files: map[any]*heldFile{}}

type heldFiles struct {
	mu    sync.Mutex
	files map[any]*heldFile // by what tells a file from all others
}

type heldFile struct {
	opened int
	// gone is what gets the bytes back; nil as long as the file has a name.
	gone   *Usage
	size   int64  // when its last name was removed
	folder string // in which that was
}

// key tells a file from all others, by its path where the system has no number for it.
func (i *info) key(l place) any {
	if i.inode == 0 {
		return l.host()
	}
	return [2]uint64{i.device, i.inode}
}

// hold counts a file as open. It is called before the file is opened, so that no removal
// in between finds it closed.
func (h *heldFiles) hold(key any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.files[key] == nil {
		h.files[key] = new(heldFile)
	}
	h.files[key].opened++
}

// drop takes back a hold. If it was the last of a file without a name, that gives back
// the size that it has now, or -1 for the one that it had then.
func (h *heldFiles) drop(key any, size int64) {
	h.mu.Lock()
	f := h.files[key]
	f.opened--
	last := f.opened == 0
	if last {
		delete(h.files, key)
	}
	h.mu.Unlock()
	if !last || f.gone == nil {
		return
	}
	if size < 0 {
		size = f.size
	}
	defer f.gone.change()()
	f.gone.give(nameCost + size)
}

// remove reports whether a file whose last name was removed is open: then its bytes are
// given back when it is closed.
func (h *heldFiles) remove(key any, size int64, g *grant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.files[key]
	if f == nil {
		return false
	}
	f.gone, f.size, f.folder = g.usage, size, g.Root.Name()
	return true
}

// nameless reports whether a file that was removed in a folder, or in one below or above
// it, is open.
func (h *heldFiles) nameless(folder string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		if f.gone != nil && (below(folder, f.folder) || below(f.folder, folder)) {
			return true
		}
	}
	return false
}

func below(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
