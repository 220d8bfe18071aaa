package status

import (
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// A Server tells how one server is.
type Server struct {
	Server string    `json:"server"`
	Phase  Phase     `json:"phase"`
	Since  time.Time `json:"since,omitzero"`
	Local  bool      `json:"local,omitempty"`
	// Name and Version are what the server calls itself, Protocol is the revision of MCP that
	// is spoken with it, and Capabilities are the names of what it declares, sorted. All are
	// empty of one that is not connected.
	Name         string   `json:"name,omitempty"`
	Version      string   `json:"version,omitempty"`
	Protocol     string   `json:"protocol,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	Tools        int      `json:"tools"`
	// Prompts, Resources and Templates, of resources, are how many the server lists.
	Prompts   int `json:"prompts,omitempty"`
	Resources int `json:"resources,omitempty"`
	Templates int `json:"templates,omitempty"`
	Skills    int `json:"skills,omitempty"` // also quarantined ones
	// Methods are how many it has that MCP does not have.
	Methods int `json:"methods,omitempty"`
	// Fault and Error are why the server is faulted, or was when the endpoint was closed.
	Fault fault.Kind `json:"fault,omitempty"`
	Error string     `json:"error,omitempty"`
	// Said are the last lines of a child's standard error, the oldest first.
	Said  []string `json:"said,omitempty"`
	Notes []Note   `json:"notes,omitempty"`
	// Confined says that all of the server's confinement is enforced, Unenforced
	// what is not, in words.
	Confined   bool     `json:"confined,omitempty"`
	Unenforced []string `json:"unenforced,omitempty"`
	// Circuit is CircuitOpen while calls fail at once, since the server has failed too
	// often, and CircuitHalfOpen when the next one tries it; else empty.
	Circuit string `json:"circuit,omitempty"`
	// Quarantined are the names of what the server declares and no one has approved.
	Quarantined []string `json:"quarantined,omitempty"`
}

// The states of a circuit that is not closed, of [Server.Circuit].
const (
	CircuitOpen     = pace.Open
	CircuitHalfOpen = pace.HalfOpen
)

// A Phase is where an endpoint is in its life.
type Phase string

// The phases. Only a Ready endpoint takes calls; Closed is the end.
const (
	Idle       Phase = "idle"
	Connecting Phase = "connecting"
	Starting   Phase = "starting" // Connecting, of a child, in a [Server]
	Ready      Phase = "ready"
	Closing    Phase = "closing"
	Closed     Phase = "closed"
	Faulted    Phase = "faulted"
)

// A Declaration is the identity and the lists of a server, at one time.
type Declaration struct {
	Server string
	// Config says how the server is reached; nil for a local one.
	Config *options.Endpoint
	// TLSKey is the hex SHA-256 of the public key of its certificate, as the
	// certificate holds it (RFC 7469, section 2.4), if it is asked for.
	TLSKey       string
	Instructions gate.Doc // absent if there are none
	Tools        []gate.Doc
	Prompts      []gate.Doc
	Templates    []gate.Doc // of resources
	Pages        []gate.Doc // of apps, as they are pinned
	Skills       []gate.Doc // as they are pinned
	// Own says, for each of Tools, whether it is part of the program, and Modules what it
	// runs in; Modules is nil for servers that are not local.
	Own     []bool
	Modules []options.ToolModule
	// Announced is when the server said that its tools have changed; zero if it has
	// just been connected.
	Announced time.Time
}

// Lists says which lists of a fleet have changed. Possibly none has: a server was connected again,
// and lists the same as before.
type Lists struct{ Tools, Prompts, Resources bool }
