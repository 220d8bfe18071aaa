// Package sandbox runs functions of untrusted WebAssembly modules under limits.
//
// A [Runtime] compiles a [Module], which holds one or more tools: functions from JSON to
// JSON. What a call leaves is seen by no other, and a guest reaches what [Grants] and the
// [Host] of the call give it. How modules look, and what bounds them, is in docs/reference/modules.md.
//
// The package is the promised surface of internal/sandbox, which also inspects modules,
// runs those that are servers, and holds the tools that the program brings along.
package sandbox

import (
	"context"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/sandbox"
)

// A Runtime compiles and runs modules.
type Runtime = sandbox.Runtime

// A Config configures a [Runtime], and Limits bound calls.
type (
	Config = sandbox.Config
	Limits = sandbox.Limits
)

// A Module is compiled code with its tools.
type Module = sandbox.Module

// A ModuleConfig configures a [Module]: its Manifest states its tools, Grants what it may
// have, such as a Dir, and Isolation what its calls share.
type (
	ModuleConfig = sandbox.ModuleConfig
	Manifest     = sandbox.Manifest
	Tool         = sandbox.Tool
	Grants       = sandbox.Grants
	Dir          = sandbox.Dir
	Isolation    = sandbox.Isolation
)

// What calls share: nothing but instances that were put back, nothing, or the state of
// their session.
const (
	IsolationCall     = sandbox.IsolationCall
	IsolationInstance = sandbox.IsolationInstance
	IsolationSession  = sandbox.IsolationSession
)

// A CallConfig is what one call has beyond its arguments, and a Result what it answered.
type (
	CallConfig = sandbox.CallConfig
	Result     = sandbox.Result
)

// A Host carries out what the guest of one call asks for.
type (
	Host         = sandbox.Host
	HTTPRequest  = sandbox.HTTPRequest
	HTTPResponse = sandbox.HTTPResponse
	KVRequest    = sandbox.KVRequest
	KVResponse   = sandbox.KVResponse
)

// A Trap reports that a guest failed or exceeded a limit, as its Code says, and a BusyError
// that a call ended before its guest began.
type (
	Trap      = sandbox.Trap
	BusyError = sandbox.BusyError
)

// ErrDenied says that a guest may not have what it asked for.
var ErrDenied = sandbox.ErrDenied

// New returns a [Runtime]. It must be closed.
func New(ctx context.Context, cfg Config) (*Runtime, error) { return sandbox.New(ctx, cfg) }

// ParseManifest reads a manifest in YAML, such as `wasmgate sandbox new` writes, or in JSON.
func ParseManifest(b []byte) (Manifest, error) {
	file, err := config.ParseManifest("manifest", b)
	if err != nil {
		return Manifest{}, err
	}
	return sandbox.ParseManifest(file.JSON)
}

// EmbeddedTools returns the module that holds the tools which wasmgate brings along.
func EmbeddedTools() ([]byte, error) { return sandbox.EmbeddedTools() }

// ChildMain compiles a module if this process was started for that, and does not return
// then. A program calls it first thing in main, as gateway.ChildMain does: without it
// modules are compiled in the process itself, under a quarter of the bounds.
func ChildMain() { sandbox.ChildMain() }
