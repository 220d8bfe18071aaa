package granted

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/sandbox"
)

// Dirs returns the folders that are written as PATH or PATH=NAME, with :rw at the end for one that
// may be changed.
func Dirs(written []string) ([]sandbox.Dir, error) {
	var dirs []sandbox.Dir
	for _, w := range written {
		path, write := strings.CutSuffix(w, ":rw")
		path, as, _ := strings.Cut(path, "=")
		if path == "" {
			return nil, errors.New("the path is empty")
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(dirs, func(d sandbox.Dir) bool { return d.Path == path }) {
			return nil, fmt.Errorf("%s is given twice", path)
		}
		dirs = append(dirs, sandbox.Dir{Path: path, Write: write, As: as})
	}
	return dirs, nil
}

// Secrets returns those that are written as NAME=ORIGIN. It takes the values of secrets from the environment, as command lines are seen
// by others.
func Secrets(written []string, lookup func(string) (string, bool)) (all []dial.Secret, err error) {
	for _, w := range written {
		name, origin, ok := strings.Cut(w, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not NAME=ORIGIN, such as API=https://api.example.com", w)
		}
		value, set := lookup(name)
		if !set {
			return nil, fmt.Errorf("the environment has no %s, which is to hold the secret", name)
		}
		secret, err := dial.NewSecret(name, value, origin)
		if err != nil {
			return nil, err
		}
		all = append(all, secret)
	}
	return all, nil
}

// Settings returns what is written as KEY=VALUE.
func Settings(written []string) (map[string]string, error) {
	settings := map[string]string{}
	for _, w := range written {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is not KEY=VALUE", w)
		}
		if _, twice := settings[key]; twice {
			return nil, fmt.Errorf("%s is given twice", key)
		}
		settings[key] = value
	}
	return settings, nil
}
