package config

import (
	"log/slog"
	"path/filepath"
	"slices"
	"time"
)

// Defaults of what a file leaves out.
const (
	DefaultListen     = "127.0.0.1:7420"
	DefaultDrain      = 20 * time.Second
	DefaultTimeout    = 30 * time.Second      // of a call to a server
	DefaultStart      = 2 * time.Minute       // of a server that is a command; others have DefaultTimeout
	DefaultDecision   = 50 * time.Millisecond // of a policy decision
	DefaultSession    = time.Hour             // without use, after which a session begins anew
	DefaultBody       = 4 << 20               // bytes of a request
	DefaultResult     = 10 << 20              // bytes of an upstream's answer
	DefaultConcurrent = 64                    // calls in progress
	DefaultAuditSize  = 100 << 20             // bytes of a file of the audit log
	DefaultAuditKeep  = 10                    // files of the audit log
	DefaultAuditHold  = 7 * 24 * time.Hour    // age of records before they are removed
)

// A Config is a whole, checked configuration. Every path in it is absolute, and
// every default is filled in unless a field says otherwise. It is not changed
// after [Load], [Open] or [Default] has returned it.
type Config struct {
	File       string        // where it was read from; empty for the defaults
	Project    string        // the trusted project's file that was added; empty without one
	Listen     []string      // host:port, or unix:PATH; see [Config.CheckListen]
	Drain      time.Duration // that calls under way may take to end when the gateway does
	PublicURL  string        // by which clients reach the gateway, without a path; empty: not said
	Vault      Vault         // where the key of the logins is
	TLS        TLS
	Auth       Auth
	Principals []Principal
	Agents     []Agent // whose hooks are answered, in the order of the file
	Console    Console
	Groups     []Group // in the order of the file
	Catalog    Catalog
	Servers    []Server // in the order of the file; the project's after the user's
	Tools      []Module // in the order of the file; the project's after the user's
	Secrets    []BoundSecret
	MustSign   bool // each module has it; see [Module]
	Policy     Policy
	Sanitize   Sanitize
	Pins       Pins
	Approvals  Approvals
	Sessions   Sessions
	Jobs       Jobs
	Audit      Audit
	Limits     Limits
	HTTP       HTTP
	Log        Log
	Telemetry  Telemetry
	Anchor     Anchor
	Arguments  Arguments
	Notify     []Notify // in the order of the file
	ServerInfo ServerInfo
	State      string // folder of keys, caches, control socket
	Warnings   []Problem
	Replay     Replay
	Dev        string // path of the module that its author works on; see [Config.Develop]
}

// ServerInfo is what clients are told of the gateway; empty members are wasmgate's own.
type ServerInfo struct{ Name, Version, Description string }

// Replay says what answers calls in the place of servers. The zero Replay is nothing;
// no file says anything else.
type Replay struct {
	File  string // the recording
	State string // of the gateway whose calls it holds
}

// Default returns what holds without any file: no servers, the embedded
// packs, the log in the state folder of d and the grants, which a person edits,
// in its configuration folder.
func Default(d Dirs) *Config {
	c := beside(d.State)
	c.State = d.State
	c.Policy.Grants = filepath.Join(d.Config, grantsFile)
	c.Pins.Lockfile = filepath.Join(d.Config, lockFile)
	return c
}

const (
	grantsFile = "grants.yaml"
	auditFile  = "audit.jsonl"
	lockFile   = "wasmgate.lock"
)

// beside returns the defaults of a file in dir.
func beside(dir string) *Config {
	return &Config{
		Listen:   []string{DefaultListen},
		Drain:    DefaultDrain,
		Auth:     Auth{Local: true},
		Policy:   Policy{Packs: []string{"grants"}, Grants: filepath.Join(dir, grantsFile), Timeout: DefaultDecision},
		Catalog:  Catalog{Mode: "off"},
		Sanitize: Sanitize{Profile: "text"},
		Pins:     Pins{Mode: "trust-first", Lockfile: filepath.Join(dir, lockFile)},
		Sessions: Sessions{Scope: "connection", TTL: DefaultSession},
		Jobs:     defaultJobs(),
		Approvals: Approvals{
			Channels: slices.Clone(channels), Hold: 55 * time.Second, Expire: 10 * time.Minute,
		},
		Audit: Audit{
			Path: filepath.Join(dir, auditFile), Record: "digest", Sync: "group",
			MaxSize: DefaultAuditSize, Keep: DefaultAuditKeep, Hold: DefaultAuditHold,
		},
		Limits:    Limits{Body: DefaultBody, Result: DefaultResult, Concurrent: DefaultConcurrent},
		Log:       Log{Level: slog.LevelInfo, Format: "text"},
		Telemetry: defaultTelemetry(),
		State:     filepath.Join(dir, "state"),
	}
}
