package setup

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/internal/config"
)

// Access is what a confined server gets in addition to what [Confine] finds in its command.
type Access struct {
	Read, Write []string // absolute paths
}

// Confine confines the command of a server. It may read the files and folders that its arguments name and write
// to a folder of its own, which is its home, and it reaches servers by HTTPS. Missing is what this machine
// cannot enforce; then the server stays as it is. Containers stay as they are, too: their engine confines them.
func Confine(cfg *config.Config, s *config.Server, a Access) (missing []string, err error) {
	if s.Command == "" || s.Confine != nil || Containers(s.Command) {
		return nil, nil
	}
	if missing = confine.Missing(confine.Rules{Connect: []uint16{443}, DNS: true}); len(missing) > 0 {
		return missing, nil
	}
	home := filepath.Join(cfg.State, "servers", s.ID)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	rules := &config.Confine{Write: []string{home}, Execute: append(installation(s.Command), home), Connect: []uint16{443}, DNS: true}
	for _, arg := range s.Args {
		if path := named(arg); path != "" && !slices.Contains(a.Write, path) {
			rules.Read = append(rules.Read, path)
		}
	}
	rules.Read, rules.Write = append(rules.Read, a.Read...), append(rules.Write, a.Write...)
	for _, list := range []*[]string{&rules.Read, &rules.Write, &rules.Execute} {
		for i, path := range *list {
			(*list)[i] = literal(path)
		}
	}
	s.Confine = rules
	if _, set := s.Env["HOME"]; !set {
		s.Env = maps.Clone(s.Env)
		if s.Env == nil {
			s.Env = map[string]config.Secret{}
		}
		s.Env["HOME"] = config.Secret(literal(home)) // where npm and uv keep what they download
	}
	return nil, nil
}

// literal returns a text as a configuration has it.
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// Containers reports whether a command starts containers.
func Containers(command string) bool {
	return slices.Contains([]string{"docker", "podman", "nerdctl"}, strings.TrimSuffix(filepath.Base(command), ".exe"))
}

// named returns what a server reads if an argument names a file or folder: of a script its folder, in which its
// modules are, unless that is the user's home.
func named(arg string) string {
	if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
		arg = value
	}
	info, err := os.Stat(arg)
	if err != nil || !filepath.IsAbs(arg) && !strings.ContainsRune(filepath.ToSlash(arg), '/') && info.IsDir() {
		return ""
	}
	path, err := filepath.Abs(arg)
	if err != nil {
		return ""
	}
	folder := filepath.Dir(path)
	if !info.IsDir() && folder != userHome() && folder != filepath.Dir(folder) {
		return folder
	}
	return path
}

// system are the folders whose programs every confined server may execute.
var system = []string{"/usr/bin/", "/usr/local/bin/", "/bin/", "/usr/sbin/", "/sbin/"}

// installation returns the folders that a program is installed in: that of its file and, if it is one of several
// folders of an installation, such as those of nvm, pyenv and virtual environments, all of that.
func installation(command string) (folders []string) {
	path, err := exec.LookPath(command)
	if err != nil {
		return nil
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	for _, file := range []string{path, real} {
		if slices.ContainsFunc(system, func(dir string) bool { return strings.HasPrefix(file, dir) }) {
			continue
		}
		dir := filepath.Dir(file)
		if base, whole := filepath.Base(dir), filepath.Dir(dir); (base == "bin" || base == "shims") && whole != userHome() && whole != filepath.Join(userHome(), ".local") && whole != "/" {
			dir = whole
		}
		if !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	return folders
}

func userHome() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}
