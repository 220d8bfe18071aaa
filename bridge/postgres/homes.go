package postgres

import (
	"context"
	"errors"
	"fmt"
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

func (h *homes) forget(of gate.Owner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.by, of)
}

// prune forgets what is old, and the homes at gateways that are gone or give theirs away.
func (h *homes) prune(nodes []Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.by, func(_ gate.Owner, at home) bool {
		return time.Now().After(at.until) || slices.ContainsFunc(nodes, func(n Node) bool { return n.Name == at.node && (n.Gone || n.Draining) })
	})
}

// findHome says where the home of an owner is, whether that gateway still runs, and whether it has not
// been used for as long as its sessions last.
const findHome = `select h.node, h.boot, h.epoch, coalesce(n.boot = h.boot and n.lease_until >= clock_timestamp(), false),
	h.used < clock_timestamp() - $3 * interval '1 microsecond'
from homes h left join nodes n on n.node = h.node where h.tenant = $1 and h.owner = $2`

// takeHome is a step from one epoch to the next.
const takeHome = `update homes set node = $3, boot = $4, epoch = epoch + 1, used = clock_timestamp(), since = clock_timestamp() where tenant = $1 and owner = $2 and epoch = $5`

// Home returns the gateway that has what the requests of an owner leave in memory. If there is none, or
// the lease of the one that there was has ended, or the home was not used for ttl, it is this one; while
// this one drains, another one. Now asks for what holds at the moment, and not a few seconds ago.
func (s *Store) Home(ctx context.Context, of gate.Owner, ttl time.Duration, now bool) (string, error) {
	if node, ok := s.homes.find(of); ok && !now {
		return node, nil
	}
	mine, boot := s.db.Node()
	if s.Drains() {
		err := s.db.Row(ctx, "select node, boot from nodes where lease_until >= clock_timestamp() and not draining and url <> '' order by random() limit 1", nil, &mine, &boot)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return "", err
		}
	}
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
			err = s.inherit(ctx, of, node, run, epoch, mine, boot)
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

// inherit has a gateway take the home of an owner over from one whose lease has ended, or from none. It locks
// the row of the lease, which may be renewed at the same moment.
func (s *Store) inherit(ctx context.Context, of gate.Owner, node, run string, epoch int64, by, boot string) error {
	return s.db.Within(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var runs bool
		err := tx.QueryRow(ctx, "select boot = $2 and lease_until >= clock_timestamp() from nodes where node = $1 for update", node, run).Scan(&runs)
		if errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
		if err != nil || runs {
			return err
		}
		_, err = tx.Exec(ctx, takeHome, of.Tenant, of.ID, by, boot, epoch)
		return err
	})
}

// ErrUsed says that a home has been used meanwhile, and is not given up.
var ErrUsed = errors.New("the home was used meanwhile")

// Release gives up the home of an owner, if it is here, so that the next gateway that is asked becomes it.
// That one takes the values of sessions over, which are by session. A home that was used within idle stays: the error is [ErrUsed]. Zero gives up any.
func (s *Store) Release(ctx context.Context, of gate.Owner, idle time.Duration, values map[string][]byte) error {
	mine, boot := s.db.Node()
	s.homes.forget(of)
	stays := false
	err := s.db.Within(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var epoch int64
		err := tx.QueryRow(ctx, "select epoch, $5 > 0 and used > clock_timestamp() - $5 * interval '1 microsecond' from homes where tenant = $1 and owner = $2 and node = $3 and boot = $4 for update",
			of.Tenant, of.ID, mine, boot, idle.Microseconds()).Scan(&epoch, &stays)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err == nil && stays:
			return nil
		case err == nil:
			epoch++
			_, err = tx.Exec(ctx, "update homes set node = '', boot = '', epoch = $3 where tenant = $1 and owner = $2", of.Tenant, of.ID, epoch)
		}
		if err != nil {
			return err
		}
		// What this home was handed, and has not looked at, goes on to the next one.
		if _, err := tx.Exec(ctx, "update session_values set epoch = $3 where tenant = $1 and owner = $2 and epoch = $3 - 2", of.Tenant, of.ID, epoch); err != nil {
			return err
		}
		for id, raw := range values {
			k := gate.SessionKey{Owner: of, ID: id}
			if _, err := tx.Exec(ctx, `insert into session_values (tenant, owner, id, epoch, sealed) values ($1, $2, $3, $4, $5)
				on conflict (tenant, owner, id) do update set epoch = excluded.epoch, sealed = excluded.sealed, used = excluded.used`,
				of.Tenant, of.ID, id, epoch, s.values.Seal(nil, nil, raw, aboutValues(k))); err != nil {
				return err
			}
			// Values that others have met are counted as lost in raw already. What this gateway meets later is not in it.
			if _, err := tx.Exec(ctx, "update sessions set readers = array_remove(readers, $4) where tenant = $1 and owner = $2 and id = $3", of.Tenant, of.ID, id, s.Reader()); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && stays {
		err = ErrUsed
	}
	return err
}

// Homes returns the owners whose home is here, and was not used for so long.
func (s *Store) Homes(ctx context.Context, idle time.Duration) (all []gate.Owner, err error) {
	mine, boot := s.db.Node()
	err = s.db.Rows(ctx, "select tenant, owner from homes where node = $1 and boot = $2 and used <= clock_timestamp() - $3 * interval '1 microsecond'", []any{mine, boot, idle.Microseconds()}, func(row pgx.CollectableRow) error {
		var of gate.Owner
		err := row.Scan(&of.Tenant, &of.ID)
		all = append(all, of)
		return err
	})
	return all, err
}

// valuesPurpose is the purpose of the key that seals values on their way.
const valuesPurpose = "wasmgate values 1"

// aboutValues binds what is sealed to a session.
func aboutValues(k gate.SessionKey) []byte {
	return fmt.Appendf(nil, "%q %q %q", k.Tenant, k.Owner.ID, k.ID)
}
