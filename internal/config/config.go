package config

import (
	"path/filepath"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Defaults that others know.
const (
	DefaultListen = "127.0.0.1:7420"
	DefaultDrain  = 20 * time.Second
	DefaultStart  = 2 * time.Minute  // of a server that is a command
	DefaultReach  = 30 * time.Second // of a server at a URL, to be ready
)

// A Config is a whole, checked configuration. Every path in it is absolute, and
// every default is filled in unless a field says otherwise. It is not changed
// after [Load], [Open] or [Default] has returned it. [decode.Key] explains the tags of
// its parts.
type Config struct {
	File       string        // where it was read from; empty for the defaults
	Project    string        // the trusted project's file that was added; empty without one
	Listen     []string      `key:"listen listen" default:"127.0.0.1:7420" restart:"yes"` // host:port, or unix:PATH; see [Config.CheckListen]
	Drain      time.Duration `key:"drain 1s..1h" default:"20s"`                           // that calls under way may take to end when the gateway does
	PublicURL  string        `key:"public_url public"`                                    // by which clients reach the gateway, without a path; empty: not said
	Vault      Vault         `key:"vault" restart:"yes"`                                  // where the key of the logins is
	TLS        TLS           `key:"tls"`
	Auth       Auth          `key:"auth"`
	Principals []Principal   `key:"principals"`
	Agents     []Agent       `key:"agents"` // whose hooks are answered, in the order of the file
	Console    Console       `key:"console" restart:"yes"`
	Groups     []Group       `key:"groups"` // in the order of the file
	Catalog    Catalog       `key:"catalog"`
	Servers    []Server      // in the order of the file; the project's after the user's
	Tools      []Module      // in the order of the file; the project's after the user's
	Secrets    []BoundSecret
	MustSign   bool       `key:"tools_verify configured|required"` // each module has it; see [Module]
	Policy     Policy     `key:"policy"`
	Sanitize   Sanitize   `key:"sanitize"`
	Pins       Pins       `key:"pins"`
	Approvals  Approvals  `key:"approvals"`
	Sessions   Sessions   `key:"sessions"`
	Jobs       Jobs       `key:"jobs"`
	Audit      Audit      `key:"audit"`
	Limits     Limits     `key:"limits"`
	HTTP       HTTP       `key:"http"`
	Log        Log        `key:"log"`
	Telemetry  Telemetry  `key:"telemetry"`
	Notify     []Notify   `key:"notify"` // in the order of the file
	ServerInfo ServerInfo `key:"server_info"`
	Registry   string     `key:"registry"` // that servers are added from by their names: a URL or a path; empty: the official one
	Store      Store      `key:"store" restart:"yes"`
	Cluster    Cluster    `key:"cluster" restart:"yes"`
	State      string     `key:"state path" restart:"yes"` // folder of keys, caches, control socket; see [Config.place]
	Warnings   []tree.Problem
	Replay     Replay
	Dev        string // path of the module that its author works on; see [Config.Develop]
}

// ServerInfo is what the gateway tells clients about itself; empty members are wasmgate's own.
type ServerInfo struct {
	Name        string `key:"name"`
	Version     string `key:"version"`
	Description string `key:"description"`
}

// Replay says what answers calls in the place of servers. The zero Replay is nothing;
// no file says anything else.
type Replay struct {
	File  string // the recording
	State string // of the gateway whose calls it holds
}

const grantsFile = "grants.yaml"

// defaults returns the defaults of a file in dir, without its state.
func defaults(dir string) *Config {
	c := new(Config)
	(&decode.File{Dir: dir, Words: words}).Fill(c)
	c.Policy.Grants = filepath.Join(dir, grantsFile)
	return c
}

// Fill gives the fields of a part of the configuration their defaults.
func Fill(part any) { (&decode.File{Words: words}).Fill(part) }
