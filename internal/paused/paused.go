package paused

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/files"
)

func file(state string) string { return filepath.Join(state, "paused.json") }

// Read returns what a state folder says is paused.
func Read(state string) ([]string, error) {
	b, err := os.ReadFile(file(state))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var paused []string
	if err == nil {
		err = json.Unmarshal(b, &paused)
	}
	if err != nil {
		return nil, fmt.Errorf("what is paused cannot be read, and so nothing is started: %s: %w", file(state), err)
	}
	return paused, nil
}

// Keep has a state folder say that this is paused, and nothing else.
func Keep(state string, paused []string) error {
	if len(paused) == 0 {
		if err := os.Remove(file(state)); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(paused)
	if err != nil {
		return err
	}
	return files.ReplaceSynced(file(state), append(b, '\n'), 0o600)
}

// Next pauses or resumes what the next gateway with a state folder starts with, and returns what
// is paused then.
func Next(state, server string, resume bool) ([]string, error) {
	paused, err := Read(state)
	if err != nil {
		return nil, err
	}
	paused = slices.DeleteFunc(paused, func(s string) bool { return s == server })
	if !resume {
		paused = append(paused, server)
	}
	slices.Sort(paused)
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	return paused, Keep(state, paused)
}

// Words says what is paused, "" if nothing is.
func Words(paused []string) string {
	switch {
	case len(paused) == 0:
		return ""
	case slices.Contains(paused, ""):
		return "everything"
	default:
		return "server " + strings.Join(paused, ", ")
	}
}

// Resume returns the commands that let calls pass again.
func Resume(paused []string) string {
	var commands []string
	for _, server := range paused {
		command := "wasmgate resume"
		if server != "" {
			command += " --server " + server
		}
		commands = append(commands, command)
	}
	return strings.Join(commands, " && ")
}
