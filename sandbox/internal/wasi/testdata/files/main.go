// Command files uses the os package on the directory given as its argument and
// prints ok, or what went wrong. It is built for wasip1 by the tests.
package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

func run(dir string) error {
	return errors.Join(files(dir), names(dir), directories(dir), escapes(dir), streams(), clocks(), random())
}

func expect(what string, got, want any) error {
	if got != want {
		return fmt.Errorf("%s: %v, want %v", what, got, want)
	}
	return nil
}

func files(dir string) error {
	path := filepath.Join(dir, "file.txt")
	if err := os.WriteFile(path, []byte("hello world"), 0o644); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString("!"); err != nil {
		return err
	}
	if _, err := f.Seek(6, io.SeekStart); err != nil {
		return err
	}
	rest, err := io.ReadAll(f)
	if err := errors.Join(err, expect("after seek", string(rest), "world!")); err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(5), f.Sync()); err != nil {
		return err
	}
	all, err := os.ReadFile(path)
	if err := errors.Join(err, expect("after truncate", string(all), "hello")); err != nil {
		return err
	}
	when := time.Unix(1_000_000_000, 0)
	if err := os.Chtimes(path, when, when); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, missing := os.Stat(filepath.Join(dir, "missing"))
	return errors.Join(expect("time", info.ModTime().Equal(when), true), expect("size", info.Size(), int64(5)),
		expect("missing", errors.Is(missing, fs.ErrNotExist), true))
}

func names(dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Rename(at("file.txt"), at("renamed")), os.Link(at("renamed"), at("linked")),
		os.Symlink("renamed", at("soft"))); err != nil {
		return err
	}
	to, err := os.Readlink(at("soft"))
	if err := errors.Join(err, expect("link", to, "renamed")); err != nil {
		return err
	}
	soft, err := os.Lstat(at("soft"))
	if err := errors.Join(err, expect("type of a link", soft.Mode().Type(), fs.ModeSymlink)); err != nil {
		return err
	}
	all, err := os.ReadFile(at("soft"))
	return errors.Join(err, expect("through the link", string(all), "hello"),
		os.Remove(at("soft")), os.Remove(at("linked")), os.Remove(at("renamed")))
}

func directories(dir string) error {
	deep := filepath.Join(dir, "a", "b", "c")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		return err
	}
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(deep, fmt.Sprint(i)), nil, 0o644); err != nil {
			return err
		}
	}
	list, err := os.ReadDir(deep)
	if err := errors.Join(err, expect("entries", len(list), 300)); err != nil {
		return err
	}
	found := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		found++
		return err
	})
	full := os.Remove(deep)
	return errors.Join(err, expect("walked", found, 304), expect("removing a full directory fails", full != nil, true),
		os.RemoveAll(filepath.Join(dir, "a")))
}

func escapes(dir string) error {
	_, err := os.ReadFile(dir + "/../secret")
	var errs []error
	errs = append(errs, expect("reading beside the directory fails", err != nil, true))
	errs = append(errs, expect("a link out fails", errors.Is(os.Symlink("../secret", filepath.Join(dir, "out")), fs.ErrPermission), true))
	return errors.Join(errs...)
}

func streams() error {
	in, err := io.ReadAll(os.Stdin)
	return errors.Join(err, expect("stdin", string(in), strings.Repeat("x", 100_000)), expect("environment", os.Getenv("KEY"), "value"))
}

func clocks() error {
	start := time.Now()
	time.Sleep(20 * time.Millisecond)
	took := time.Since(start)
	return errors.Join(expect("slept long enough", took >= 18*time.Millisecond, true), expect("a sane year", start.Year() > 2020, true))
}

func random() error {
	a, b := rand.Text(), rand.Text()
	return expect("random texts are equal", a == b, false)
}
