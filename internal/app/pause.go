package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config"
)

// pauseRequest asks for a pause, or for its end.
type pauseRequest struct {
	Server string `json:"server"` // "" is everything
	Resume bool   `json:"resume"`
}

// pauseFile keeps what is paused over a restart: what somebody has stopped does not begin
// again because a process has died.
func pauseFile(c *config.Config) string { return filepath.Join(c.State, "paused.json") }

// Paused returns what is paused on a configuration whose gateway does not run, too.
func Paused(c *config.Config) ([]string, error) {
	b, err := os.ReadFile(pauseFile(c))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var paused []string
	if err == nil {
		err = json.Unmarshal(b, &paused)
	}
	if err != nil {
		return nil, fmt.Errorf("what is paused cannot be read, and so nothing is started: %s: %w", pauseFile(c), err)
	}
	return paused, nil
}

func keepPaused(c *config.Config, paused []string) error {
	if len(paused) == 0 {
		if err := os.Remove(pauseFile(c)); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(paused)
	if err != nil {
		return err
	}
	temporary := pauseFile(c) + ".new"
	if err := os.WriteFile(temporary, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, pauseFile(c)) // whole, or not there
}

// stayPaused pauses what was paused when the last gateway ended.
func (a *App) stayPaused() error {
	paused, err := Paused(a.cfg)
	if err != nil {
		return err
	}
	for _, server := range paused {
		if err := a.gateway.Pause(server, "the operator, before this start"); err != nil {
			return err
		}
	}
	return nil
}

// Pause refuses every new call of a server, or of all if server is "", also after a
// restart, until it is resumed. It returns what is paused then.
func (a *App) Pause(_ context.Context, server string, resume bool) ([]string, error) {
	a.pausing.Lock()
	defer a.pausing.Unlock()
	change := a.gateway.Pause
	if resume {
		change = a.gateway.Resume
	}
	err := change(server, byOperator)
	paused := a.gateway.Paused()
	return paused, errors.Join(err, keepPaused(a.cfg, paused))
}

// Pause does what [App.Pause] does.
func (r *Remote) Pause(ctx context.Context, server string, resume bool) ([]string, error) {
	var paused []string
	err := r.call(ctx, methodPause, pauseRequest{server, resume}, &paused)
	return paused, err
}

// PauseNext pauses or resumes what the next gateway on a configuration starts with.
func PauseNext(c *config.Config, server string, resume bool) ([]string, error) {
	paused, err := Paused(c)
	if err != nil {
		return nil, err
	}
	paused = slices.DeleteFunc(paused, func(s string) bool { return s == server })
	if !resume {
		paused = append(paused, server)
	}
	slices.Sort(paused)
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, err
	}
	return paused, keepPaused(c, paused)
}

// PauseWords says what is paused, "" if nothing is.
func PauseWords(paused []string) string {
	switch {
	case len(paused) == 0:
		return ""
	case slices.Contains(paused, ""):
		return "everything"
	default:
		return "server " + strings.Join(paused, ", ")
	}
}
