package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/files"
)

const fileName = "wasmgate.yaml"

// Files are the files that a configuration is made of. Empty: there is none.
type Files struct {
	Base    string // the file named, or the user's
	Project string // the project's; only if none was named
}

// Lookup finds the files for somebody who works in cwd. An explicit path, which
// need not exist, stands alone. Else the base is wasmgate.yaml in d.Config, and
// the project's file is .wasmgate/wasmgate.yaml in cwd or, inside a repository,
// in the nearest folder above up to the repository's root. Outside of one only
// cwd is looked at, since what lies further up may be anybody's.
func Lookup(explicit, cwd string, d Dirs) Files {
	if explicit != "" {
		return Files{Base: explicit}
	}
	var f Files
	if user := filepath.Join(d.Config, fileName); check.Exists(user) == nil {
		f.Base = user
	}
	for _, dir := range projectDirs(cwd) {
		if file := filepath.Join(dir, ".wasmgate", fileName); check.Exists(file) == nil {
			f.Project = file
			break
		}
	}
	return f
}

// projectDirs returns cwd and what is above it in its repository.
func projectDirs(cwd string) []string {
	var dirs []string
	for dir := filepath.Clean(cwd); ; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if check.Exists(filepath.Join(dir, ".git")) == nil {
			return dirs
		}
		if dir == filepath.Dir(dir) {
			return dirs[:1]
		}
	}
}

// ProjectFile returns the configuration of the project that cwd is in: the one that
// [Lookup] finds, or else where it would be for cwd itself.
func ProjectFile(cwd string, d Dirs) string {
	if f := Lookup("", cwd, d); f.Project != "" {
		return f.Project
	}
	return filepath.Join(cwd, ".wasmgate", fileName)
}

// Open returns the configuration for somebody who works in cwd, made of the
// files that [Lookup] finds: the base, or [Default], and the servers and tools
// of the project's file if it is trusted as it is now. If it is not, a warning
// says so and the file has no effect.
func Open(explicit, cwd string, o Options) (*Config, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	f := Lookup(explicit, cwd, o.Dirs)
	c := Default(o.Dirs)
	if f.Base != "" {
		if c, err = Load(f.Base, o); err != nil {
			return nil, err
		}
	}
	if f.Project == "" {
		return c, nil
	}
	data, err := tree.Read(f.Project)
	if err != nil {
		return nil, fmt.Errorf("the project's configuration cannot be read: %w", err)
	}
	trust, err := trustOf(o.Dirs.State, f.Project, data)
	if err != nil {
		return nil, err
	}
	if trust != trusted {
		c.Warnings = append(c.Warnings, tree.Problem{File: f.Project, Message: string(trust)})
		return c, nil
	}
	if err := c.addProject(f.Project, data, o); err != nil {
		return nil, err
	}
	return c, nil
}

// addProject adds the servers and tools of a trusted project's file to c. The
// gateway is then another one than without it: its lock, control socket and
// audit log must not be those of the base, which another process may hold.
func (c *Config) addProject(path string, data []byte, o Options) error {
	file, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	d := &decode.File{Name: path, Dir: filepath.Dir(file), Lookup: o.Getenv, Foreign: true, Words: words}
	p := &Config{}
	if root, ok := d.Parse(data, false); ok {
		p.readProject(root, c)
	}
	if err := d.Problems.Err(); err != nil {
		return err
	}
	c.Project = file
	c.Servers = append(c.Servers, p.Servers...)
	c.Tools = append(c.Tools, p.Tools...)
	c.mustSign()
	c.Warnings = append(c.Warnings, d.Warnings...)
	id := fileID(files.Canonical(file))
	c.State = filepath.Join(c.State, "projects", id)
	c.Audit.Path = filepath.Join(filepath.Dir(c.Audit.Path), "projects", id, filepath.Base(c.Audit.Path))
	return nil
}

// readProject reads a project's file into c. It may only add: nothing in it changes what the base
// allows, records or limits, and no server of it takes a name for which the base has one, and with
// it grants.
func (c *Config) readProject(root decode.Value, base *Config) {
	if !root.Is(tree.Table) {
		return
	}
	known := map[string]decode.Reader{"version": version, "servers": servers(&c.Servers, base.Servers), "tools": modules(&c.Tools)}
	for _, k := range []string{"listen", "public_url", "tls", "auth", "principals", "groups", "catalog", "secrets", "policy", "sanitize", "pins", "sessions", "jobs", "audit", "limits", "http", "log", "registry", "state"} {
		known[k] = func(v decode.Value) {
			v.Fail("is not allowed in a project's file, which has only servers and tools: put it into your own file")
		}
	}
	root.Table(known)
	for _, k := range []string{"servers", "tools"} {
		if root.Has(k) {
			noGroups(root.Get(k))
		}
	}
	c.fitBase(root, base)
}

// UserFile returns the file of the person's own configuration, which need not exist.
func UserFile(d Dirs) string { return filepath.Join(d.Config, fileName) }

// Default returns the configuration without any file: no servers, the embedded packs and
// tools, and the folders of the user's own configuration.
func Default(d Dirs) *Config {
	c := defaults(d.Config)
	c.place(UserFile(d), d)
	return c
}

// place fills in the state folder, unless the file names one, and the audit log in it.
func (c *Config) place(file string, d Dirs) {
	if c.State == "" {
		c.State = stateFolder(file, d)
	}
	if c.Audit.Path == "" {
		c.Audit.Path = filepath.Join(c.State, "audit.jsonl")
	}
}

// stateFolder returns the state folder of the configuration at file: d.State for the user's own,
// and a folder below it for each other one, so that no two share it. It depends on the place of
// the file and not on what a link there leads to: Kubernetes moves that with each change.
func stateFolder(file string, d Dirs) string {
	if located(file) == located(UserFile(d)) {
		return d.State
	}
	return filepath.Join(d.State, "files", fileID(located(file)))
}

// fileID names a file in the state folder: by the name of its folder, for people, and by a digest
// of its path. It is short, since the path of a socket is limited to about 100 bytes.
func fileID(file string) string {
	folder := filepath.Base(filepath.Dir(file))
	if strings.HasPrefix(folder, ".") { // of a project, such as .wasmgate and .vscode
		folder = filepath.Base(filepath.Dir(filepath.Dir(file)))
	}
	sum := sha256.Sum256([]byte(file))
	id := serverID(folder)
	return id[:min(len(id), 16)] + "-" + hex.EncodeToString(sum[:6])
}

// located returns the path of a file with the links of its folder resolved. What a link at the
// file itself leads to does not count: Kubernetes moves that with each change.
func located(file string) string {
	return filepath.Join(files.Canonical(filepath.Dir(file)), filepath.Base(file))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
