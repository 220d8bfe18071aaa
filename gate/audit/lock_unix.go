//go:build unix

package audit

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/wasmgate/wasmgate/internal/files"
)

// lockFile takes the lock that keeps a second writer out, and leaves its process
// id in the file. The system drops the lock when the process ends. The file
// stays: to remove it would let two processes lock two files of one name.
func lockFile(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ok, err := files.TryLock(f)
	if err == nil && !ok {
		pid := make([]byte, 20)
		n, _ := f.Read(pid)
		err = fmt.Errorf("process %s is writing it: stop that one, or choose another audit.path", bytes.TrimSpace(pid[:n]))
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// syncFolder makes a new name in the folder of path survive the machine.
func syncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
