package clients

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmgate/wasmgate/internal/files"
)

// Read returns what is in the file that a client reads: of a project, of the one in the working folder.
// It follows links as [File.Edit] does, and to files of the administrator.
func (f File) Read() ([]byte, error) {
	target, err := f.target(true)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(target)
}

// An Edit is a change of one file. After is for the caller to set; nil removes the file.
type Edit struct {
	Path   string // as the client knows it
	Before []byte // nil if there is no file
	After  []byte

	target string // the file that the links in Path lead to
}

// Edit begins a change of the file. Links are followed only to a file of the same user, and those of a
// project only within it.
func (f File) Edit() (Edit, error) {
	target, err := f.target(false)
	if err != nil {
		return Edit{}, err
	}
	before, err := os.ReadFile(target)
	if errors.Is(err, fs.ErrNotExist) {
		before, err = nil, nil
	}
	return Edit{Path: f.Path, Before: before, After: before, target: target}, err
}

// Changed reports whether the edit changes anything.
func (e Edit) Changed() bool {
	return (e.Before == nil) != (e.After == nil) || !bytes.Equal(e.Before, e.After)
}

// Write carries the edit out in one step, after a backup in a folder. The file keeps its mode and owner.
func (e Edit) Write(backups string) error {
	if !e.Changed() {
		return nil
	}
	if err := e.unchanged(e.Before); err != nil {
		return err
	}
	if err := os.MkdirAll(backups, 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(backup{Path: e.Path, Before: e.Before, After: sum(e.After)})
	if err != nil {
		return err
	}
	if err := files.ReplaceSynced(backupOf(backups, e.target), b, 0o600); err != nil {
		return fmt.Errorf("keep a backup of %s: %w", e.Path, err)
	}
	return e.put(e.After)
}

// ErrNoBackup says that there is nothing to undo.
var ErrNoBackup = errors.New("no change to undo")

// Undo puts back what the last [Edit.Write] of the file replaced. A file that was changed since stays.
func (f File) Undo(backups string) error {
	e, at, err := f.undo(backups)
	if err != nil {
		return err
	}
	if err := e.put(e.After); err != nil {
		return err
	}
	return os.Remove(at)
}

// Undone returns what [File.Undo] would put back; nil is no file.
func (f File) Undone(backups string) ([]byte, error) {
	e, _, err := f.undo(backups)
	return e.After, err
}

// undo returns the edit that puts back what was replaced, and its backup.
func (f File) undo(backups string) (e Edit, at string, err error) {
	if e, err = f.Edit(); err != nil {
		return e, "", err
	}
	at = backupOf(backups, e.target)
	data, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return e, at, fmt.Errorf("%s: %w", f.Path, ErrNoBackup)
	}
	var b backup
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil {
		return e, at, fmt.Errorf("backup of %s: %w", f.Path, err)
	}
	if sum(e.Before) != b.After {
		return e, at, fmt.Errorf("%s was changed since: edit it by hand; the backup is %s", f.Path, at)
	}
	e.After = b.Before
	return e, at, nil
}

// backup is what a change replaced. Before is null if there was no file.
type backup struct {
	Path   string `json:"path"`
	Before []byte `json:"before"`
	After  string `json:"after"` // digest of what was written
}

func backupOf(folder, target string) string {
	return filepath.Join(folder, filepath.Base(target)+"."+sum([]byte(target))[:12]+".json")
}

// sum is the digest of a file's content; "" for no file.
func sum(b []byte) string {
	if b == nil {
		return ""
	}
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// unchanged is an error if the file is not as it was read.
func (e Edit) unchanged(want []byte) error {
	now, err := os.ReadFile(e.target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if (err == nil) != (want != nil) || !bytes.Equal(now, want) {
		return fmt.Errorf("%s was changed by another program; try again", e.Path)
	}
	return nil
}

// put writes or removes the file.
func (e Edit) put(data []byte) error {
	if data == nil {
		if err := os.Remove(e.target); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(e.target), 0o700); err != nil {
		return err
	}
	return files.Rewrite(e.target, data, 0o600)
}

// maxLinks is how many links may be followed, as systems have it.
const maxLinks = 40

// target returns the file that a path leads to, which need not exist. Each link belongs to the user whose
// file it leads to, or to the administrator; to read, the file may be the administrator's. What is below
// a project's folder leads nowhere else.
func (f File) target(read bool) (string, error) {
	path, root := f.Path, ""
	if f.Scope == Project {
		cwd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		if root, err = filepath.EvalSymlinks(projectOf(cwd)); err != nil {
			return "", err
		}
		if cwd, err = filepath.EvalSymlinks(cwd); err != nil {
			return "", err
		}
		path = filepath.Join(cwd, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	var owners []string // of the links
	for range maxLinks {
		link, rest := firstLink(path)
		if link == "" {
			break
		}
		by, err := owner(link)
		if err != nil {
			return "", err
		}
		owners = append(owners, by)
		to, err := os.Readlink(link)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(link), to)
		}
		path = filepath.Join(to, rest)
	}
	if link, _ := firstLink(path); link != "" {
		return "", fmt.Errorf("%s: too many links", f.Path)
	}
	if root != "" && path != root && !strings.HasPrefix(path, root+string(filepath.Separator)) {
		return "", fmt.Errorf("%s leads out of the project, to %s: it is not followed", f.Path, path)
	}
	its, err := owner(existing(path))
	if err != nil {
		return "", err
	}
	for _, by := range owners {
		if by != its && !administers(by) && !(read && administers(its)) {
			return "", fmt.Errorf("%s is a link to %s, which belongs to another user: it is not followed", f.Path, path)
		}
	}
	if !read && len(owners) > 0 && administers(its) && !administers(self()) {
		return "", fmt.Errorf("%s is a link to %s, which the administrator owns, so wasmgate does not write it: change it in the source that generates it", f.Path, path)
	}
	return path, nil
}

// firstLink returns the first part of a path that is a link, and what follows it.
func firstLink(path string) (link, rest string) {
	volume := filepath.VolumeName(path)
	at := volume + string(filepath.Separator)
	names := strings.Split(strings.Trim(path[len(volume):], string(filepath.Separator)), string(filepath.Separator))
	for i, name := range names {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if err != nil {
			return "", ""
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return at, filepath.Join(names[i+1:]...)
		}
	}
	return "", ""
}

// existing returns the path, or the nearest folder above that exists.
func existing(path string) string {
	for {
		if _, err := os.Lstat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// projectOf returns the root of the repository that a folder is in, or else the folder.
func projectOf(cwd string) string {
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return cwd
		}
	}
}
