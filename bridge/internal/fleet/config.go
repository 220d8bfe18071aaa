package fleet

import (
	"log/slog"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/player"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/agents"
)

// Config configures a [Fleet].
type Config struct {
	// Locals come first in listings, then Servers, each in its order.
	Locals  []*local.Server
	Servers []options.Endpoint
	// Agents have their tools themselves, and get back the calls that their hooks announce; nil are none.
	Agents *agents.Agents
	// Player answers calls of the tools that a recording has, in the place of their servers; nil answers none.
	Player *player.Player
	// Compiled is closed once all Locals have their tools; nil if they have them from the start.
	Compiled <-chan struct{}
	// HostTools are the names of tools that the program which embeds the gateway has
	// itself. No other tool is offered by one of them.
	HostTools []string
	// Pins sees what servers declare before it is offered; nil looks at nothing.
	Pins Pins
	// Memory keeps what servers list, so that it is offered while they start in the next run;
	// nil keeps nothing.
	Memory upstream.Memory
	// Groups are those of all servers, in addition to those of [options.Tools]: see
	// [Fleet.Regroup].
	Groups options.Groups
	Log    *slog.Logger // nil discards
}
