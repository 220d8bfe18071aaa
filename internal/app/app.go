package app

import (
	"log/slog"
	"net"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/app/exceptions"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/logins"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/app/paused"
	"github.com/wasmgate/wasmgate/internal/app/pins"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/app/sessions"
	"github.com/wasmgate/wasmgate/internal/app/settings"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
)

// An App is the one gateway that runs on a configuration. It holds the lock of
// the state folder from [New] to [App.Close].
type App struct {
	// The parts of the gateway that commands, the console and programs ask.
	Approvals  *approvals.Approvals
	Callers    *callers.Callers
	Calls      *calls.Calls
	Desk       *desks.Front
	Exceptions exceptions.Exceptions
	Inventory  *inventory.Inventory
	Logins     *logins.Logins
	Nodes      *Nodes
	Overview   *overview.Overview
	Pauses     *paused.Pauses
	Pins       *pins.Pins
	Policies   *policies.Policies
	Sessions   sessions.Sessions
	Settings   *settings.Settings

	operations operation.Table // of all of these

	cfg     *config.Config
	log     *slog.Logger
	lock    *control.Lock
	records records
	shared  shared
	gateway *gateway.Gateway
	servers *translation.Servers
	clients clients
	beside  *background.Work
	front   net.Listener // of the first address for HTTP; nil if there is none

	bodyTime time.Duration // that clients have to send the body of a request
}
