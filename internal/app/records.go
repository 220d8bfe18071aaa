package app

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/internal/app/paused"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/state"
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

	catchUp   func(ctx context.Context) bool
	following sync.Mutex
	followed  atomic.Uint64         // the generation whose changes have been made
	failed    atomic.Pointer[error] // what the last look at the generation came to; nil before the first
	asked     atomic.Int64          // when a refused caller last had the generation looked at
	here      map[string]bool       // what is paused here only, since the database was away; with App.pausing
}

// problem says why the database cannot be used, or what is wrong with the clocks; nil if nothing is.
func (s *shared) problem() error {
	if s.Store == nil {
		return nil
	}
	if err := s.failed.Load(); err != nil && *err != nil {
		return *err
	}
	return s.Problem()
}

// pausedHere notes whether a pause holds on this gateway only. The caller holds App.pausing.
func (s *shared) pausedHere(server string, only bool) {
	if s.here == nil {
		s.here = map[string]bool{}
	}
	s.here[server] = only
}

// askEvery is how often refused callers have the generation looked at, at most.
const askEvery = 50 * time.Millisecond

// refusedTooSoon reports whether a caller that was refused may be let in now, because its key was
// made by another gateway a moment ago.
func (s *shared) refusedTooSoon(ctx context.Context) bool {
	now, last := time.Now().UnixNano(), s.asked.Load()
	return s.Store != nil && now-last >= int64(askEvery) && s.asked.CompareAndSwap(last, now) && s.catchUp(ctx)
}

// sealOf returns the secret for what clients hold: of the gateway, or of all that share a
// database.
func sealOf(c *config.Config) ([]byte, error) {
	if !c.Store.On() {
		return state.Secret(c.State)
	}
	return hkdf.Key(sha256.New, []byte(c.Store.Secret), nil, "wasmgate seal 1", 32)
}
