package confine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmgate/wasmgate/confine"
)

// Folders of PATH that cannot be used do not decide whether a program is found.
func TestUselessFoldersOfPath(t *testing.T) {
	root := t.TempDir()
	foreign := fs.FileMode(0o601) // its owner may not execute it
	if os.Geteuid() == 0 {
		foreign = 0o700
	}
	made := map[string]fs.FileMode{".": 0o755, "..": 0o755, "locked": 0, "file": 0o644, "good/tool": 0o755, "plain/tool": 0o644, "foreign/tool": foreign}
	err := errors.Join(os.MkdirAll(filepath.Join(root, "locked/inner"), 0o755), os.Symlink("loop", filepath.Join(root, "loop")), os.WriteFile(filepath.Join(root, "file"), nil, 0o644))
	for _, folder := range []string{"good", "plain", "foreign"} {
		made[folder] = 0o755
		err = errors.Join(err, os.Mkdir(filepath.Join(root, folder), 0o755), os.WriteFile(filepath.Join(root, folder, "tool"), nil, 0o644))
	}
	for path, mode := range made { // whatever the umask is, and although the temporary folder is private
		err = errors.Join(err, os.Chmod(filepath.Join(root, path), mode))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(root, "locked"), 0o755) })
	find := func(folders ...string) (string, error) {
		for i, f := range folders {
			folders[i] = filepath.Join(root, f)
		}
		if os.Geteuid() == 0 { // who may read everything: this thread looks as an ordinary user
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			unix.SetfsuidRetUid(65534)
			defer unix.SetfsuidRetUid(0)
		}
		return confine.LookPath("tool", root, []string{"PATH=" + strings.Join(folders, ":")})
	}

	long := strings.Repeat("long/", 2000)
	for _, tt := range []struct {
		folders string
		says    string
	}{
		{"missing", ": install it"}, {"file", ": install it"}, {"loop", ": install it"}, {long, ": install it"},
		{"locked", " (" + root + "/locked cannot be read): install it"},
		{"locked/inner:missing", " (" + root + "/locked/inner cannot be read): install it"},
		{"file:locked:locked/inner", " (2 of its folders cannot be read, the first is " + root + "/locked): install it"},
	} {
		t.Run(tt.folders[:min(len(tt.folders), 30)], func(t *testing.T) {
			folders := strings.Split(tt.folders, ":")
			if _, err := find(folders...); err == nil || !strings.HasPrefix(err.Error(), "tool is not installed, or not in the PATH that its env sets"+tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
			for _, list := range []string{tt.folders + ":good", "good:" + tt.folders, tt.folders + ":plain:foreign:good"} {
				if got, err := find(strings.Split(list, ":")...); err != nil || got != root+"/good/tool" {
					t.Errorf("%s, %v", got, err)
				}
			}
			for _, last := range []string{"plain", "foreign"} {
				if _, err := find(append(strings.Split(tt.folders, ":"), last)...); err == nil || err.Error() != root+"/"+last+"/tool is not executable: permission denied" {
					t.Errorf("%s: %v", last, err)
				}
			}
		})
	}
}
