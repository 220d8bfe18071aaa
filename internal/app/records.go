package app

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/internal/app/homes"
	"github.com/wasmgate/wasmgate/internal/app/paused"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/background/notify"
	"github.com/wasmgate/wasmgate/internal/cluster"
	"github.com/wasmgate/wasmgate/internal/cluster/members"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/telemetry"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// records are the documents by which calls are refused.
type records struct {
	keys, revoked, paused state.Document
}

// recordsOf returns those of one gateway: files in its state folder.
func recordsOf(c *config.Config) records {
	file := func(name string) state.Document { return state.File(filepath.Join(c.State, name)) }
	return records{keys: file("keys.json"), revoked: file("revoked.json"), paused: file(paused.File)}
}

// shared is the database that this gateway has with others. The zero value is none.
type shared struct {
	*postgres.Store // nil without one

	homes *homes.Homes   // nil without a database
	peers *cluster.Peers // nil if this gateway forwards nothing

	catchUp   func(ctx context.Context)
	following sync.Mutex
	followed  atomic.Uint64         // the generation whose changes have been made
	failed    atomic.Pointer[error] // what the last look at the generation came to; nil before the first
	looking   sync.Mutex            // held over a look for refused callers
	looked    time.Time             // when the last of those began, with looking
}

// logins has logins shared with other gateways.
func (s *shared) logins(c *config.Config, o *login.Options) error {
	if s.Store == nil {
		return nil
	}
	kept, err := members.Key(c, "wasmgate vault 1")
	if err != nil {
		return err
	}
	o.Vault, o.Turn = vault.Shared(s.document, s.Names, kept), s.Turn
	if s.peers != nil {
		o.Node = s.peers.Node()
	}
	o.Seal, err = members.Key(c, "wasmgate sign-in 1")
	return err
}

// document returns one of a name.
func (s *shared) document(name string) state.Document { return s.Document(name) }

// Problem says why the database cannot be used, or what is wrong with the clocks; nil if nothing is.
func (s *shared) Problem() error {
	if s.Store == nil {
		return nil
	}
	if err := s.failed.Load(); err != nil && *err != nil {
		return *err
	}
	return s.Store.Problem()
}

// Metrics are those of the homes of principals.
func (s *shared) Metrics() []telemetry.Metric { return s.homes.Metrics() }

// reportTime is for how long one gateway has the right to report a condition. All see it within seconds.
const reportTime = time.Minute

// reports says whether this gateway reports a condition: of several that see it, the first one does. If
// that cannot be known, it does, too: a notice that comes twice is better than none.
func (s *shared) reports(ctx context.Context, c background.Condition) bool {
	if s.Store == nil || c.Kind == notify.Audit { // each has a log of its own
		return true
	}
	mine, err := s.Lease(ctx, "notice "+c.Key, reportTime)
	return mine || err != nil
}

// askEvery is how often refused callers have the generation looked at, at most.
const askEvery = 50 * time.Millisecond

// refusedTooSoon reports whether a caller that was refused may be let in now, because its key was
// made by another gateway a moment ago. Callers that are refused at the same time share one look.
func (s *shared) refusedTooSoon(ctx context.Context) bool {
	if s.Store == nil {
		return false
	}
	refused := time.Now()
	s.looking.Lock()
	defer s.looking.Unlock()
	if s.looked.After(refused) {
		return true
	}
	select {
	case <-time.After(time.Until(s.looked.Add(askEvery))):
	case <-ctx.Done():
		return false
	}
	s.looked = time.Now()
	s.catchUp(ctx)
	return true // another look may have found the key since
}

// sealOf returns the secret for what clients hold: of the gateway, or of all that share a
// database.
func sealOf(c *config.Config) ([]byte, error) {
	if !c.Store.On() {
		return state.Secret(c.State)
	}
	return members.Key(c, "wasmgate seal 1")
}
