package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Temporary ends the names of files that are not whole yet. One that is left over was
// being written when its process was killed.
const Temporary = ".tmp"

// Replace writes a file in one step: readers see the old file or the new one, and after an error the
// old one is still there. The new one may be lost if the machine fails.
func Replace(path string, data []byte, mode fs.FileMode) error {
	return replace(path, data, mode, false, nil)
}

// ReplaceSynced is [Replace] of what must not be lost with the machine.
func ReplaceSynced(path string, data []byte, mode fs.FileMode) error {
	return replace(path, data, mode, true, nil)
}

// Rewrite is [ReplaceSynced] of a file of the user's: it keeps the mode and the owner that the
// file has. A new file gets the mode.
func Rewrite(path string, data []byte, mode fs.FileMode) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return replace(path, data, mode, true, nil)
	}
	if err != nil {
		return err
	}
	return replace(path, data, info.Mode().Perm(), true, func(f *os.File) error { return giveOwner(f, info) })
}

// replace writes a file by way of a new one, which prepare, unless it is nil, gets before it is
// put in place.
func replace(path string, data []byte, mode fs.FileMode, synced bool, prepare func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+Temporary) // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil && prepare != nil {
		err = prepare(f)
	}
	if err = errors.Join(err, f.Chmod(mode)); err == nil && synced {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Mode returns the mode of a file that is to be replaced; otherwise if there is no file.
func Mode(path string, otherwise fs.FileMode) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return otherwise
}

const (
	lockTime  = 5 * time.Second // what is done under a lock takes milliseconds
	lockEvery = 5 * time.Millisecond
)

// ErrLocked is why a lock was not taken: another process kept it for longer than any edit takes.
var ErrLocked = errors.New("another process is editing it; try again")

// LockBeside keeps other processes, and other callers in this one, from what is done to
// the file at path under the same lock, whether there is such a file or not. It waits for
// its holder, but not for ever: then the error is [ErrLocked]. The folder has to exist.
func LockBeside(path string) (unlock func(), err error) {
	f, err := openBeside(path)
	if err != nil {
		return nil, err
	}
	if err := waitLock(f, path); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func waitLock(f *os.File, path string) error {
	giveUp := time.After(lockTime)
	again := time.NewTicker(lockEvery)
	defer again.Stop()
	for {
		if ok, err := TryLock(f); ok || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-giveUp:
			return fmt.Errorf("%s, for %s now: %w", path, lockTime, ErrLocked)
		}
	}
}

// Canonical returns the absolute path of a file with its links resolved.
func Canonical(file string) string {
	abs, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	return abs
}
