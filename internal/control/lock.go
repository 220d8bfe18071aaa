package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/wasmgate/wasmgate/internal/files"
)

// ErrHeld says that another process runs on the state folder.
var ErrHeld = errors.New("another wasmgate runs on this state folder")

// A Lock is held by the one process that owns a state folder. The system gives
// it back when the process ends, however it ends.
type Lock struct{ f *os.File }

// Acquire takes the lock of a state folder, which it creates for its owner
// alone. The error is [ErrHeld] if another process has it. A folder in which every user can write
// is refused.
func Acquire(state string) (*Lock, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("create state folder: %w", err)
	}
	if info, err := os.Stat(state); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("every user of this machine can write in the state folder %s (mode %03o), and so become the operator. Run: chmod 700 %s", state, info.Mode().Perm(), state)
	}
	f, err := os.OpenFile(filepath.Join(state, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	ok, err := files.TryLock(f)
	if err == nil && !ok {
		err = ErrHeld
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Lock{f}, nil
}

// Release gives the lock back. It may be called again.
func (l *Lock) Release() error {
	if err := l.f.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
