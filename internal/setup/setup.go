package setup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/edit"
	"github.com/wasmgate/wasmgate/internal/config/extract"
	"github.com/wasmgate/wasmgate/internal/config/hosts"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/draft"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/match"
)

// A Source is a file of a client, and the servers in it.
type Source struct {
	Client  string // its name; "" if only the file is known
	ID      string // by which [Connect] knows the client; "" if only the file is known
	Own     bool   // the file is the user's, not a project's
	File    string
	Servers []config.Server // all but the gateway itself
	Notes   []tree.Problem
}

// Sources returns the files of all known clients that have servers. Notes say which files cannot
// be used.
func Sources() (all []Source, notes []string) {
	here, err := clients.Here()
	if err != nil {
		return nil, []string{err.Error()}
	}
	return sourcesOf(here.Clients())
}

func sourcesOf(some []clients.Client) (all []Source, notes []string) {
	for _, c := range some {
		for _, f := range c.Servers {
			data, err := f.Read()
			var s Source
			if err == nil {
				s, err = read(c.Name(), f.Path, bytes.NewReader(data))
				s.ID, s.Own = c.ID, f.Scope == clients.User
			}
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				notes = append(notes, fmt.Sprintf("%s is left out: %v", f.Path, err))
			case len(s.Servers) > 0:
				all = append(all, s)
			}
		}
	}
	return all, notes
}

// Read reads the servers in a file of a client. A file without servers is none's mistake.
func Read(client, file string) (Source, error) {
	r, err := os.Open(file)
	if err != nil {
		return Source{Client: client, File: file}, err
	}
	defer r.Close()
	return read(client, file, r)
}

func read(client, file string, r io.Reader) (s Source, err error) {
	s = Source{Client: client, File: file}
	s.Servers, s.Notes, err = config.ImportMCP(r, file)
	if err != nil && !strings.Contains(err.Error(), hosts.NoServers) {
		return s, err
	}
	s.Servers = slices.DeleteFunc(s.Servers, itself)
	return s, nil
}

// From returns the servers that a client has, or that are in a file.
func From(name string) ([]Source, error) {
	here, err := clients.Here()
	if err != nil {
		return nil, err
	}
	named := here.Named(name)
	if len(named) == 0 {
		s, err := Read("", name)
		return []Source{s}, err
	}
	all, notes := sourcesOf(named)
	if len(all) == 0 {
		return nil, errors.New(strings.Join(append([]string{name + " has no servers here"}, notes...), "; "))
	}
	return all, nil
}

// itself reports whether a server is the gateway, which has no use for itself.
func itself(s config.Server) bool {
	own := strings.TrimSuffix(filepath.Base(s.Command), ".exe") == "wasmgate"
	for _, word := range append([]string{s.URL}, s.Args...) {
		own = own || strings.Contains(strings.ReplaceAll(word, "localhost", "127.0.0.1"), config.DefaultListen+"/mcp")
	}
	return own
}

// Own returns the server that a person writes as NAME=COMMAND WORD... or as NAME=URL.
func Own(written string) (config.Server, error) {
	id, what, found := strings.Cut(written, "=")
	words, err := split(what)
	if err != nil || !found || len(words) == 0 {
		return config.Server{}, cmp.Or(err, fmt.Errorf("%q does not describe a server: write NAME=COMMAND ARGUMENT..., or NAME=URL", written))
	}
	return Server(strings.TrimSpace(id), words)
}

// Server returns the server of a URL, or of a command and its words.
func Server(id string, words []string) (config.Server, error) {
	s := map[string]any{"command": words[0], "args": words[1:]}
	if strings.Contains(words[0], "://") {
		s = map[string]any{"url": words[0]}
	}
	one, _, err := config.ImportMCP(bytes.NewReader(mcpJSON(id, s)), "mcp.json")
	if err != nil {
		return config.Server{}, err
	}
	return one[0], nil
}

// split splits a command into words; quotes keep a word together.
func split(line string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if begun {
				words = append(words, word.String())
			}
			begun = false
			word.Reset()
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%s has a quote without its end", line)
	}
	return words, nil
}

// Merged returns the servers of all sources. One that is there twice comes once; another one of
// the same name gets a name of its own. Notes say how those differ.
func Merged(sources []Source) (all []config.Server, notes []string) {
	of := map[string]Source{} // by the names of servers
	for _, source := range sources {
		for _, s := range source.Servers {
			name := s.ID
			for i := 2; ; i++ {
				at := slices.IndexFunc(all, func(has config.Server) bool { return has.ID == s.ID })
				if at < 0 {
					all, of[s.ID] = append(all, s), source
				} else if !bytes.Equal(edit.Render(all[at:at+1]), edit.Render([]config.Server{s})) {
					s.ID = fmt.Sprintf("%s-%d", name, i)
					continue
				}
				if at < 0 && s.ID != name {
					first := all[slices.IndexFunc(all, func(has config.Server) bool { return has.ID == name })]
					notes = append(notes, fmt.Sprintf("%s is the %s of %s, which differs from that of %s: %s", s.ID, name, source.name(), of[name].name(), difference(s, first)))
				}
				break
			}
		}
	}
	return all, notes
}

// name is what a person calls a source.
func (s Source) name() string { return cmp.Or(s.Client, s.File) }

// difference says how two servers of one name are started or reached, without their tokens.
func difference(a, b config.Server) string {
	servers, _ := extract.Servers([]config.Server{a, b})
	words := func(s config.Server) string {
		return strings.Join(append([]string{cmp.Or(s.Command, s.URL)}, s.Args...), " ")
	}
	if words(servers[0]) == words(servers[1]) {
		return "another environment or other settings"
	}
	return fmt.Sprintf("%s, not %s", words(servers[0]), words(servers[1]))
}

// A Plan is what a person wants.
type Plan struct {
	Servers   []config.Server // as [Merged] and [Own] return them, with their tokens
	Granted   []string        // servers whose tools that only read are granted to local
	Tokens    bool            // stay in the file, for Complete
	Arguments bool            // of calls are kept
	Project   bool            // the servers go into the file of the project
	// Complete changes the servers once the configuration is known that gets them; nil changes nothing.
	Complete func(cfg *config.Config, servers []config.Server) error
}

// Tokens are those that the servers of a plan bring.
func (p Plan) tokens() (names []string) {
	_, moved := extract.Servers(p.Servers)
	for _, m := range moved {
		names = append(names, m.Server+" "+m.Where)
	}
	return names
}

// Made is what was written.
type Made struct {
	File    string          // the configuration
	New     bool            // the file was not there before
	Added   []string        // ids of servers
	Grants  string          // the file with the grants
	Granted []string        // tools, by their qualified names
	Left    []Left          // tools that are not granted
	Moved   []extract.Moved // tokens that have to come from the environment
	Running bool            // a gateway serves the configuration already
	Missing string          // a line that the file wants, and that a person has to write; "" if there is none
}

// A Left is a tool that was not granted.
type Left struct {
	Tool string `json:"tool"`
	Why  string `json:"why"` // it may do more than read
}

// ErrThere says that the file exists, and that the caller did not ask to add to it.
var ErrThere = errors.New("is there already")

// Write writes a configuration: the one that explicit names, or the person's own. If the file exists,
// only servers are added, and only with add. If something fails, a new file is removed again.
func Write(explicit, cwd string, p Plan, add bool) (m Made, err error) {
	m.File, err = File(explicit)
	if p.Project {
		m.File, err = projectFile(cwd)
	}
	if err != nil {
		return m, err
	}
	_, err = os.Stat(m.File)
	m.New = errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil && !add:
		return m, fmt.Errorf("%s %w", m.File, ErrThere)
	case err != nil && !m.New:
		return m, err
	case m.New:
		err = begin(m.File, p.Arguments)
		defer func() {
			if err != nil {
				err = errors.Join(err, os.Remove(m.File))
			}
		}()
	case p.Arguments && tree.Line(m.File, "audit.arguments") == 0:
		m.Missing = arguments
	}
	if err != nil {
		return m, err
	}
	cfg, err := config.Open(explicit, cwd, config.Options{})
	if err != nil {
		return m, err
	}
	m.Grants = cfg.Policy.Grants
	if p.Complete != nil {
		if err = p.Complete(cfg, p.Servers); err != nil {
			return m, err
		}
	}
	if m.Added, err = edit.AddServers(m.File, p.Servers); err == nil && !p.Project {
		_, err = config.Open(explicit, cwd, config.Options{})
	}
	return m, err
}

func projectFile(cwd string) (string, error) {
	dirs, err := config.UserDirs()
	return config.ProjectFile(cwd, dirs), err
}

// Grant grants local the tools of a server that only read, as far as their definitions say so,
// and notes those that it leaves out.
func (m *Made) Grant(tools map[string]gate.Doc) error {
	drafts := draft.Of(tools)
	var reads []string
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		why := drafts.Doubt(name)
		if _, open := match.Pattern(name).Cut(); open {
			why = "its name is a pattern"
		}
		if why == "" {
			reads = append(reads, name)
		} else {
			m.Left = append(m.Left, Left{name, why})
		}
	}
	if len(reads) == 0 {
		return nil
	}
	if _, err := policydata.AddGrant(context.Background(), policydata.GrantsFile(m.Grants), policydata.Grant{To: []string{"local"}, Tools: reads}); err != nil {
		return err
	}
	m.Granted = append(m.Granted, reads...)
	return nil
}

// File returns the configuration that explicit names, or the person's own.
func File(explicit string) (string, error) {
	if explicit != "" {
		return filepath.Abs(explicit)
	}
	dirs, err := config.UserDirs()
	return config.UserFile(dirs), err
}

const arguments = `audit: {arguments: {tools: ["*"], keep: 14d}}`

// begin writes a configuration without servers.
func begin(file string, keep bool) error {
	text := "# made by wasmgate; servers and keys can be added at any time\nversion: 1\n"
	if keep {
		text += arguments + "\n"
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return files.ReplaceSynced(file, []byte(text), 0o600)
}
