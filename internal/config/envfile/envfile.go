package envfile

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// maxFile bounds a file of variables, in bytes.
const maxFile = 1 << 20

// name is what shells take for one.
var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Read returns the variables of a file that only its owner may read.
func Read[Value ~string](file string) (map[string]Value, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s: other users may read it (mode %o): run chmod 600 on it", file, perm)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: more than %d bytes", file, maxFile)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	vars := map[string]Value{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !name.MatchString(key) {
			return nil, fmt.Errorf("%s:%d: no line of the form NAME=value", file, i+1)
		}
		if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		vars[key] = Value(value)
	}
	return vars, nil
}
