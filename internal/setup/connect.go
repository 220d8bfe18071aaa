package setup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/config"
)

// Name is the name of the gateway among a client's servers.
const Name = "wasmgate"

// A Connection is a change of a client's settings that makes the client use the gateway, or no longer use it.
type Connection struct {
	Client string
	File   string
	Edit   clients.Edit
	Bypass []string // servers in the file that the gateway protects: the client reaches them without it
	Others []string // servers in the file that the gateway does not know

	client clients.Client
	file   clients.File
}

// Connect returns the change that adds the gateway to the user's own settings of a client. It removes no
// other server: see [Connection.RemoveBypass].
func Connect(client string, cfg *config.Config, e clients.Entry) (Connection, error) {
	c, err := connection(client)
	if err != nil {
		return c, err
	}
	backups, err := backups()
	if err != nil {
		return c, err
	}
	before := c.Edit.Before
	if was, err := c.file.Undone(backups); err == nil { // connected before: this replaces it
		before = was
	}
	c.Edit.After, err = c.client.SetServer(c.file.Format, before, Name, e)
	if err != nil {
		return c, fmt.Errorf("%s %w", c.File, err)
	}
	entries, err := c.client.Entries(c.file.Format, before)
	if err != nil {
		return c, fmt.Errorf("%s %w", c.File, err)
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		switch {
		case name == Name:
		case slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return same(name, entries[name], s) }):
			c.Bypass = append(c.Bypass, name)
		default:
			c.Others = append(c.Others, name)
		}
	}
	return c, nil
}

// RemoveBypass has the change also remove the servers that the gateway protects.
func (c *Connection) RemoveBypass() (err error) {
	after, err := c.client.RemoveServers(c.file.Format, c.Edit.After, c.Bypass...)
	if err != nil {
		return fmt.Errorf("%s %w", c.File, err)
	}
	c.Edit.After = after
	return nil
}

// Write carries the change out, after a backup that [Disconnect] puts back: of the file as it was before the
// first connection.
func (c *Connection) Write() error {
	backups, err := backups()
	if err != nil {
		return err
	}
	if err := c.file.Undo(backups); err == nil {
		after := c.Edit.After
		if c.Edit, err = c.file.Edit(); err != nil {
			return err
		}
		c.Edit.After = after
	}
	return c.Edit.Write(backups)
}

// Disconnect puts the settings of a client back as they were before [Connection.Write]. If they were changed
// since, it only removes the gateway, and reports false.
func Disconnect(client string) (file string, whole bool, err error) {
	c, err := connection(client)
	if err != nil {
		return "", false, err
	}
	backups, err := backups()
	if err != nil {
		return "", false, err
	}
	if err := c.file.Undo(backups); err == nil {
		return c.File, true, nil
	}
	if c.Edit.After, err = c.client.RemoveServers(c.file.Format, c.Edit.Before, Name); err != nil {
		return c.File, false, fmt.Errorf("%s %w", c.File, err)
	}
	return c.File, false, c.Edit.Write(backups)
}

// backups is the folder of what Write replaced. Other changes of the same files have folders of their own.
func backups() (string, error) {
	dir, err := config.Backups()
	return filepath.Join(dir, "connect"), err
}

// connection begins a change of the user's own settings of a client: of the file that exists, or else of the
// first.
func connection(client string) (Connection, error) {
	here, err := clients.Here()
	if err != nil {
		return Connection{}, err
	}
	known, ok := here.Client(client)
	if named := here.Named(client); !ok && len(named) > 0 {
		known, ok = named[0], true
	}
	if !ok {
		return Connection{}, fmt.Errorf("no client %q is known; these are: %s", client, strings.Join(Clients(), ", "))
	}
	c := Connection{Client: known.ID, client: known}
	own := slices.DeleteFunc(slices.Clone(known.Servers), func(f clients.File) bool { return f.Scope != clients.User })
	if len(own) == 0 {
		return c, errors.New("no settings of " + known.ID + " are known here")
	}
	c.file = own[0]
	if i := slices.IndexFunc(own, func(f clients.File) bool { _, err := os.Stat(f.Path); return err == nil }); i >= 0 {
		c.file = own[i]
	}
	c.File = c.file.Path
	c.Edit, err = c.file.Edit()
	return c, err
}

// Clients returns the clients that can be connected.
func Clients() (all []string) {
	here, err := clients.Here()
	if err != nil {
		return nil
	}
	for _, c := range here.Clients() {
		all = append(all, c.ID)
	}
	return all
}

// same reports whether a server of a client is one that the gateway has.
func same(name string, e clients.Entry, s config.Server) bool {
	if e.URL != "" {
		return e.URL == s.URL
	}
	return e.Command == s.Command && (name == s.ID || sameArgs(e.Args, s.Args))
}
