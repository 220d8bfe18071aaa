package paused

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/files/state"
)

// File is the name of the file in a state folder that keeps pauses.
const File = "paused.json"

// Load returns what a document says is paused. The error says that it cannot be read.
func Load(ctx context.Context, doc state.Document) (paused []string, err error) {
	raw, _, err := doc.Load(ctx, 0)
	if err == nil {
		paused, err = parse(doc, raw)
	}
	return paused, err
}

func parse(doc state.Document, raw []byte) (paused []string, err error) {
	if raw != nil {
		err = json.Unmarshal(raw, &paused)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", doc.Name(), err)
	}
	return paused, err
}

// Change pauses or resumes a server, or everything if server is "", and returns what was paused
// before, and what is now.
func Change(ctx context.Context, doc state.Document, server string, resume bool) (before, now []string, err error) {
	err = doc.Change(ctx, func(raw []byte) ([]byte, error) {
		if before, err = parse(doc, raw); err != nil {
			return nil, err
		}
		now = slices.DeleteFunc(slices.Clone(before), func(s string) bool { return s == server })
		if !resume {
			now = append(now, server)
		}
		if slices.Sort(now); len(now) == 0 {
			return nil, nil
		}
		raw, err := json.Marshal(now)
		return append(raw, '\n'), err
	})
	return before, now, err
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
