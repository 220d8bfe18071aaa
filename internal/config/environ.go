package config

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// maxEnvFile bounds a file of variables, in bytes.
const maxEnvFile = 1 << 20

// envName is what shells take for one.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// envFrom reads a list of names of variables that a server gets as the gateway has them.
func (d *decoder) envFrom(to *map[string]Secret, n *node, path string) {
	*to = map[string]Secret{}
	d.items(n, path, func(item *node, at string) {
		var name string
		if d.text(&name, checkVariable)(item, at); name == "" || checkVariable(name) != nil {
			return
		}
		variable := *item
		variable.text = "${" + name + "}"
		if value, ok := d.written(&variable, at); ok {
			(*to)[name] = Secret(value)
		}
	})
}

// envFile reads the file of variables that a server gets: NAME=value lines, empty ones and
// those that begin with # apart. Nobody else may read the file. Without it the server is faulted.
func (d *decoder) envFile(to *map[string]Secret, n *node, path string) {
	var file string
	if d.path(&file)(n, path); file == "" {
		return
	}
	vars, err := readEnvFile(file)
	if err != nil && d.faults != nil {
		*d.faults = append(*d.faults, path+": "+err.Error())
	}
	*to = vars
}

func readEnvFile(file string) (map[string]Secret, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s: other users may read it (mode %o): run chmod 600 on it", file, perm)
	}
	if info.Size() > maxEnvFile {
		return nil, fmt.Errorf("%s: more than %d bytes", file, maxEnvFile)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	vars := map[string]Secret{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || !envName.MatchString(name) {
			return nil, fmt.Errorf("%s:%d: no line of the form NAME=value", file, i+1)
		}
		if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		vars[name] = Secret(value)
	}
	return vars, nil
}

// joined returns all variables; the later of two maps wins.
func joined(all ...map[string]Secret) (env map[string]Secret) {
	for _, one := range all {
		if one != nil && env == nil {
			env = map[string]Secret{}
		}
		maps.Copy(env, one)
	}
	return env
}
