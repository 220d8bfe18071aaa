package app

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/login/connect"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/web"
)

// An App is the one gateway that runs on a configuration. It holds the lock of
// the state folder from [New] to [App.Close].
type App struct {
	cfg     *config.Config
	log     *slog.Logger
	lock    *control.Lock
	records records
	shared  shared
	gateway *gateway.Gateway
	policy  atomic.Pointer[policyfiles.Files] // that in use
	shadow  atomic.Pointer[policyfiles.Files] // nil without a shadow policy
	bundles atomic.Pointer[policyfiles.Bundles]
	clients clients
	passing bool // it was started for one command: see [App.Answer]
	beside  *background.Work
	servers *translation.Servers
	senders *senders
	logins  *login.Logins
	connect *connect.Connect
	listing sync.Map     // of servers with a new login, what is closed when they are listed again
	listens []string     // addresses for HTTP
	front   net.Listener // of the first of them; nil if there is none
	tls     *web.TLS     // of those that speak it; nil if none does

	bodyTime  time.Duration // that clients have to send the body of a request
	lookAgain time.Duration // after which who has opened a stream is found out again

	desk      Desk         // nil without one to run
	api       http.Handler // of it, over the control socket
	console   string       // its URL
	noConsole string       // why it has none though it should

	reloaded func(context.Context, *App, error) // is told of each reading of the configuration; may be nil

	config      atomic.Pointer[configState]
	policyError atomic.Pointer[outcome]
	pinError    atomic.Pointer[outcome]
	shadowError atomic.Pointer[outcome]
	pausing     sync.Mutex     // held over pausing and keeping that, so that what is kept is what holds
	glass       approval.Glass // broken in an emergency: see BreakGlass
	reloading   sync.Mutex     // held over reading and setting a policy, so that the newest is set last
}

// An outcome is what came of the last time that something was read.
type outcome struct{ err error }

// configState is the outcome of the last reading of the configuration.
type configState struct {
	read    time.Time // when what is in use was read
	cfg     *config.Config
	files   string          // as they were at the start; see configFiles
	err     error           // why what the files hold now is not in use
	unset   []string        // what of it could not be put in place, and is tried again
	stuck   []config.Server // that could not be removed
	restart []string        // keys that have changed since the start, and wait for the next

	refused *policyfiles.Files // with which calls could not be decided on; nil if they can
	state   [32]byte           // of these, when they were read
}

// mended reports whether the files of a policy have changed that kept a configuration from
// being put in place.
func (c *configState) mended() bool { return c.refused != nil && c.refused.State() != c.state }
