package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/gate"
)

const (
	// homeTime is how long the home of an owner is believed to be where it was.
	homeTime = 15 * time.Second
	// homeTries is how often a home is looked for that others take meanwhile.
	homeTries = 4
)

// homes are those that were found a moment ago.
type homes struct {
	mu sync.Mutex
	by map[gate.Owner]home
}

type home struct {
	node  string
	until time.Time
}

func (h *homes) find(of gate.Owner) (node string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.by[of]
	return found.node, time.Now().Before(found.until)
}

func (h *homes) keep(of gate.Owner, node string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by == nil {
		h.by = map[gate.Owner]home{}
	}
	h.by[of] = home{node, time.Now().Add(homeTime)}
}

// prune forgets what is old, and the homes at gateways that are gone.
func (h *homes) prune(nodes []Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.by, func(_ gate.Owner, at home) bool {
		return time.Now().After(at.until) || slices.ContainsFunc(nodes, func(n Node) bool { return n.Name == at.node && n.Gone })
	})
}

// findHome says where the home of an owner is, whether that gateway still runs, and whether it has not
// been used for as long as its sessions last.
const findHome = `select h.node, h.boot, h.epoch, coalesce(n.boot = h.boot and n.lease_until >= clock_timestamp(), false),
	h.used < clock_timestamp() - $3 * interval '1 microsecond'
from homes h left join nodes n on n.node = h.node where h.tenant = $1 and h.owner = $2`

// takeHome is a step from one epoch to the next.
const takeHome = `update homes set node = $3, boot = $4, epoch = epoch + 1, used = clock_timestamp() where tenant = $1 and owner = $2 and epoch = $5`

// Home returns the gateway that has what the requests of an owner leave in memory: this one, if there
// is none yet, or the lease of the one that there was has ended, or the home was not used for ttl. Now
// asks for what holds at the moment, and not a few seconds ago.
func (s *Store) Home(ctx context.Context, of gate.Owner, ttl time.Duration, now bool) (string, error) {
	if node, ok := s.homes.find(of); ok && !now {
		return node, nil
	}
	mine, boot := s.db.Node()
	for range homeTries {
		var node, run string
		var epoch int64
		var runs, idle bool
		err := s.db.Row(ctx, findHome, []any{of.Tenant, of.ID, ttl.Microseconds()}, &node, &run, &epoch, &runs, &idle)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			_, err = s.db.Exec(ctx, "insert into homes (tenant, owner, node, boot) values ($1, $2, $3, $4) on conflict do nothing", of.Tenant, of.ID, mine, boot)
		case err != nil:
		case !runs:
			err = s.inherit(ctx, of, node, run, epoch)
		case idle && node != mine:
			_, err = s.db.Exec(ctx, takeHome+" and used < clock_timestamp() - $6 * interval '1 microsecond'", of.Tenant, of.ID, mine, boot, epoch, ttl.Microseconds())
		default:
			s.homes.keep(of, node)
			return node, nil
		}
		if err != nil {
			return "", err
		}
	}
	return mine, nil // as others take it all the time, values are lost here
}

// inherit takes the home of an owner over from a gateway whose lease has ended. It locks the row of the lease,
// which the gateway may renew at the same moment.
func (s *Store) inherit(ctx context.Context, of gate.Owner, node, run string, epoch int64) error {
	mine, boot := s.db.Node()
	return s.db.Within(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var runs bool
		err := tx.QueryRow(ctx, "select boot = $2 and lease_until >= clock_timestamp() from nodes where node = $1 for update", node, run).Scan(&runs)
		if errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
		if err != nil || runs {
			return err
		}
		_, err = tx.Exec(ctx, takeHome, of.Tenant, of.ID, mine, boot, epoch)
		return err
	})
}
