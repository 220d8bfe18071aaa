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

// Replace writes a file in one step: whoever opens it has the old one or the new one, and
// after an error there is the old one. It may be lost with the machine.
func Replace(path string, data []byte, mode fs.FileMode) error {
	return replace(path, data, mode, false)
}

// ReplaceSynced is [Replace] of what must not be lost with the machine.
func ReplaceSynced(path string, data []byte, mode fs.FileMode) error {
	return replace(path, data, mode, true)
}

func replace(path string, data []byte, mode fs.FileMode, synced bool) (err error) {
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
	if err = errors.Join(err, f.Chmod(mode)); err == nil && synced {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Mode returns the mode of a file, for who replaces it; otherwise if there is none.
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

// LockBeside keeps other processes, and other callers in this one, from what is done to
// the file at path under the same lock, whether there is such a file or not. It waits for
// whoever has it, but not for ever. The folder has to exist.
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
			return fmt.Errorf("another process has been editing %s for %s; try again", path, lockTime)
		}
	}
}
