package dirs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Dirs are the folders of the person who runs wasmgate.
type Dirs struct {
	Home   string
	Config string // of what a person edits
	State  string // of what the program keeps
}

// UserDirs returns the folders of this process's user.
func UserDirs() (Dirs, error) {
	home, err := os.UserHomeDir()
	d := DirsOf(runtime.GOOS, home, os.Getenv)
	if err != nil && !(filepath.IsAbs(d.Config) && filepath.IsAbs(d.State)) {
		return Dirs{}, fmt.Errorf("find the home folder: %w; set it, or both XDG_CONFIG_HOME and XDG_STATE_HOME", err)
	}
	return d, nil
}

// DirsOf returns the folders on goos of the user who lives in home. They follow
// the XDG Base Directory Specification 0.8 where its variables are set, to
// absolute paths as it asks, and on systems that have no custom of their own.
func DirsOf(goos, home string, getenv func(string) string) Dirs {
	config, state := filepath.Join(home, ".config"), filepath.Join(home, ".local", "state")
	switch goos {
	case "darwin":
		config = filepath.Join(home, "Library", "Application Support")
		state = config
	case "windows":
		config = absolute(getenv("APPDATA"), filepath.Join(home, "AppData", "Roaming"))
		state = absolute(getenv("LOCALAPPDATA"), filepath.Join(home, "AppData", "Local"))
	}
	config = absolute(getenv("XDG_CONFIG_HOME"), config)
	state = absolute(getenv("XDG_STATE_HOME"), state)
	d := Dirs{Home: home, Config: filepath.Join(config, "wasmgate"), State: filepath.Join(state, "wasmgate")}
	if d.State == d.Config {
		d.State = filepath.Join(d.State, "state") // macOS has no folder for state alone
	}
	return d
}

// absolute returns path if it is absolute, else fallback.
func absolute(path, fallback string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return fallback
}
