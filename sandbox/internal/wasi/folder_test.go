package wasi

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestFoldersFollowNoLink: whatever was seen before, a name that is a link by now
// is not gone through.
func TestFoldersFollowNoLink(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("os.Root follows links within the root; there, what was opened is compared with what was looked at")
	}
	dir := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.WriteFile(filepath.Join(dir, "file"), nil, 0o644),
		os.Symlink("sub", filepath.Join(dir, "to-sub")), os.Symlink("file", filepath.Join(dir, "to-file")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f, err := openFolder(root)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, name := range []string{"to-sub", "file", "to-file", "nothing"} {
		if in, err := f.enter(name); err == nil {
			t.Errorf("it entered %s", name)
			in.close()
		}
	}
	for _, mode := range []int{os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREATE} {
		if file, _, err := f.open("to-file", mode); err == nil {
			t.Errorf("it opened the file behind a link, mode %x", mode)
			file.Close()
		}
	}
	before, err := os.Stat(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.setTimes("to-file", 1, 1); err != nil {
		t.Error(err)
	}
	if after, err := os.Stat(filepath.Join(dir, "file")); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the times of what a link leads to were set (%v)", err)
	}
}
