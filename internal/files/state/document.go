package state

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/wasmgate/wasmgate/internal/files"
)

// A Document is a small JSON document that must hold wherever it is read, such as the list of
// revoked tokens: a file of one gateway, or a row that several gateways share. Use it from
// several goroutines.
type Document interface {
	// Name says in messages where the document is.
	Name() string
	// Load returns the document and its generation, which differs from that of any version
	// before. If that is the generation seen already, raw is nil. A document that was never
	// written is nil, too, in generation 0.
	Load(ctx context.Context, seen uint64) (raw []byte, generation uint64, err error)
	// Change puts what f returns in place of the document, with no other change in between.
	// Nil removes it. After an error of f, which Change returns, the document is as it was.
	// When Change has returned, no gateway admits a call by what was there before.
	Change(ctx context.Context, f func(raw []byte) ([]byte, error)) error
}

// File returns the document that a file holds, for its owner only. Several processes may use it.
func File(path string) Document { return &file{path: path} }

type file struct {
	path string

	mu   sync.Mutex
	info os.FileInfo // of the version of
	last uint64      // its generation
}

func (f *file) Name() string { return f.path }

func (f *file) Load(_ context.Context, seen uint64) ([]byte, uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.info = nil
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	case f.info != nil && seen == f.last && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size():
		return nil, seen, nil
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, 0, fmt.Errorf("%s: other users may read it (mode %o); run chmod 600 on it", f.path, info.Mode().Perm())
	}
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return nil, 0, err
	}
	h := fnv.New64a()
	h.Write(raw)
	if f.info, f.last = info, h.Sum64()|1; f.last == seen {
		return nil, seen, nil
	}
	return raw, f.last, nil
}

func (f *file) Change(ctx context.Context, change func([]byte) ([]byte, error)) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	unlock, err := files.LockBeside(f.path)
	if err != nil {
		return err
	}
	defer unlock()
	raw, _, err := f.Load(ctx, 0)
	if err != nil {
		return err
	}
	if raw, err = change(raw); err != nil {
		return err
	}
	if raw == nil {
		if err := os.Remove(f.path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return files.ReplaceSynced(f.path, raw, 0o600)
}
