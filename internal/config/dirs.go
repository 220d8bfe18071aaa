package config

import (
	"path/filepath"

	"github.com/wasmgate/wasmgate/internal/config/dirs"
)

// Dirs are the folders of the person who runs wasmgate.
type Dirs = dirs.Dirs

// UserDirs returns the folders of this process's user.
func UserDirs() (Dirs, error) { return dirs.UserDirs() }

// Backups returns the folder of what was replaced in the files of clients.
func Backups() (string, error) {
	of, err := UserDirs()
	return filepath.Join(of.State, "backups"), err
}
