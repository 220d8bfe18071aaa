package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// A Program is a server that is started as a child.
type Program struct {
	// Command and Args are as the operator wrote them, before variables were
	// replaced: they are the same on every machine, and hold no secrets.
	Command string
	Args    []string
	// File is the program that Command resolves to, an absolute path; FileError says why there is none.
	// Started are the arguments as they are given, in the folder Dir, with the environment Env.
	File      string
	FileError error
	Started   []string
	Dir       string
	Env       []string
}

// Identity returns what the program is: the command and its arguments, with the
// SHA-256 of the executable, and of the script if that is an interpreter; or, for
// npx and uvx, the package, its version and the integrity of what was installed.
// The notes say which parts of it are not fixed. Call it once the server runs:
// npx installs what is missing.
//
// Modules that a script loads are not part of its identity.
func (p Program) Identity() (Item, []string) {
	id := map[string]any{"command": p.Command, "args": nonNil(p.Args)}
	var notes []string
	switch runner(p.Command) {
	case "npx":
		notes = p.npm(id)
	case "uvx":
		notes = p.python(id)
	default:
		if sum, err := fileDigest(p.File, p.FileError); err != nil {
			notes = append(notes, fmt.Sprintf("its executable is not pinned: %v", err))
		} else {
			id["executable"] = hash + sum
		}
		if script := p.script(); script != "" {
			if sum, err := fileDigest(script, nil); err != nil {
				notes = append(notes, fmt.Sprintf("its script is not pinned: %v", err))
			} else {
				id["script"] = hash + sum
			}
		}
	}
	return identity(id), notes
}

// Origin returns the identity of a server with a URL: its origin (RFC 6454) and,
// unless it is empty, the key of its certificate.
func Origin(address, tlsKey string) Item {
	id := map[string]any{"origin": address}
	if u, err := url.Parse(address); err == nil {
		id["origin"] = u.Scheme + "://" + strings.ToLower(u.Host)
		id["path"] = u.EscapedPath() // one origin can have several servers
	}
	if tlsKey != "" {
		id["tls_key"] = tlsKey
	}
	return identity(id)
}

// Guest returns the identity of a server that is a WASM module: its hex SHA-256
// and its arguments.
func Guest(sha256 string, args []string) Item {
	return identity(map[string]any{"code": hash + sha256, "args": nonNil(args)})
}

func identity(fields map[string]any) Item {
	b, err := json.Marshal(fields)
	if err == nil {
		var d gate.Doc
		if d, err = gate.ParseDoc(b); err == nil {
			return Item{Kind: Identity, Doc: d}
		}
	}
	panic(fmt.Sprintf("lock: an identity of strings is not JSON: %v", err)) // Marshal writes valid UTF-8 and no deep nesting
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// runner returns the name of a command, without the suffixes it has on Windows.
func runner(command string) string {
	name := filepath.Base(filepath.ToSlash(command))
	for _, suffix := range []string{".exe", ".cmd", ".ps1", ".bat"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// interpreters are programs that run the first file among their arguments.
var interpreters = regexp.MustCompile(`^(node|nodejs|deno|bun|tsx|ts-node|python[0-9.]*|pypy[0-9.]*|ruby|perl|php|java|lua|Rscript|sh|bash|dash|zsh|fish|pwsh|powershell)$`)

func (p Program) script() string {
	if !interpreters.MatchString(runner(p.Command)) {
		return ""
	}
	for _, a := range p.Started {
		if strings.HasPrefix(a, "-") {
			continue
		}
		if !filepath.IsAbs(a) {
			a = filepath.Join(p.Dir, a)
		}
		if info, err := os.Stat(a); err == nil && info.Mode().IsRegular() {
			return a
		}
	}
	return ""
}

func fileDigest(path string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (p Program) getenv(name string) string {
	for _, e := range slices.Backward(p.Env) {
		if k, v, _ := strings.Cut(e, "="); k == name {
			return v
		}
	}
	return ""
}
