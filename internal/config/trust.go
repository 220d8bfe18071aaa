package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/files"
)

// Trust keeps the digest of a project's file as it is now in the state folder
// (Dirs.State), and returns it. The file has effect until it changes. What it
// names (programs, modules without sha256) is not covered.
func Trust(state, file string) (sha256 string, err error) {
	data, err := tree.ReadWhole(file)
	if err != nil {
		return "", fmt.Errorf("trust: %w", err)
	}
	sha256 = digest(data)
	return sha256, editTrust(state, func(digests map[string]string) { digests[files.Canonical(file)] = sha256 })
}

// Untrust forgets the digest of a project's file, and reports whether there was one.
func Untrust(state, file string) (was bool, err error) {
	err = editTrust(state, func(digests map[string]string) {
		_, was = digests[files.Canonical(file)]
		delete(digests, files.Canonical(file))
	})
	return was, err
}

// Trusted reports whether a project's file is trusted as it is now.
func Trusted(state, file string) (bool, error) {
	data, err := tree.ReadWhole(file)
	if err != nil {
		return false, fmt.Errorf("trust: %w", err)
	}
	t, err := trustOf(state, file, data)
	return t == trusted, err
}

// A trustState is empty for what is trusted, else the warning to give.
type trustState string

const (
	trusted   trustState = ""
	untrusted trustState = "not trusted, so it has no effect: read it, then run `wasmgate trust`"
	changed   trustState = "changed since it was trusted, so it has no effect: read it again, then run `wasmgate trust`"
)

func trustOf(state, file string, data []byte) (trustState, error) {
	digests, err := readTrust(state)
	if err != nil {
		return untrusted, err
	}
	switch d, ok := digests[files.Canonical(file)]; {
	case !ok:
		return untrusted, nil
	case d != digest(data):
		return changed, nil
	}
	return trusted, nil
}

func trustFile(state string) string { return filepath.Join(state, "trusted.json") }

// readTrust returns digests by path. A store that cannot be read trusts nothing.
func readTrust(state string) (map[string]string, error) {
	data, err := tree.Read(trustFile(state))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("trust store: %w", err)
	}
	digests := map[string]string{}
	if err := json.Unmarshal(data, &digests); err != nil || digests == nil {
		return nil, fmt.Errorf("trust store %s is damaged: remove it and trust the projects again", trustFile(state))
	}
	return digests, nil
}

// editTrust replaces the store as a whole, so that a reader sees the old or the
// new one. Of two edits at the same moment one may be lost, which only means
// that a file is not trusted, or still is, and `wasmgate trust` shows it.
func editTrust(state string, edit func(map[string]string)) error {
	digests, err := readTrust(state)
	if err != nil {
		return err
	}
	edit(digests)
	data, err := json.MarshalIndent(digests, "", "  ")
	if err != nil {
		return fmt.Errorf("trust store: %w", err)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("trust store: %w", err)
	}
	if err := files.ReplaceSynced(trustFile(state), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("trust store: %w", err)
	}
	return nil
}
