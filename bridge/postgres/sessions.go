package postgres

import (
	"context"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/pg"
)

// sessions keeps a row for each session that has read something.
type sessions struct {
	db        *pg.DB
	values    cipher.AEAD
	reads     *reads
	restoring *sync.Mutex // held over writing again what is known
}

// columns are those of a session s that a [session.Known] holds.
const columns = `s.labels, s.top, s.raised, s.readers, s.resets`

func scan(n *session.Known) []any {
	return []any{(*[]string)(&n.Labels), &n.Top, &n.Raised, &n.Readers, &n.Resets}
}

// homeTouch is how often the use of a home is written down.
const homeTouch = time.Minute

// Read shares its query with the other calls that wait: see [reads].
func (s sessions) Read(ctx context.Context, k gate.SessionKey, ttl time.Duration) (session.Known, error) {
	r, err := s.reads.read(ctx, s.db, question{k, ttl})
	n := r.known
	switch {
	case err != nil:
		return session.Known{}, err
	case r.behind == nil || *r.behind: // nil if that this gateway took its name is lost
		return session.Known{Key: k, Behind: true}, nil
	case !r.mine:
		return session.Known{}, s.db.Taken()
	case r.fresh == nil:
	case !*r.fresh:
		n = session.Known{Key: k, Resets: n.Resets, Generation: n.Generation, Home: n.Home, Elsewhere: n.Elsewhere, Handed: n.Handed}
	case *r.touch:
		_, err = s.db.Exec(ctx, "update sessions set used = clock_timestamp() where tenant = $1 and owner = $2 and id = $3", k.Tenant, k.Owner.ID, k.ID)
	}
	if err == nil && r.touchHome && !n.Elsewhere {
		_, err = s.db.Exec(ctx, "update homes set used = clock_timestamp() where tenant = $1 and owner = $2 and epoch = $3", k.Tenant, k.Owner.ID, n.Home)
	}
	n.Lost = r.doubt == 2
	if r.doubt == 1 && err == nil {
		err = errRestoring
	}
	return n, err
}

// errRestoring refuses calls while the database may lack labels that a gateway knows.
var errRestoring = &pg.Error{Err: errors.New("the database has another primary, and gateways write again what it may lack; try again later")}

func (s sessions) Restore(ctx context.Context, write func(ctx context.Context) (whole bool, err error)) error {
	s.restoring.Lock()
	defer s.restoring.Unlock()
	timeline, behind, err := s.db.Promoted(ctx)
	if err != nil || !behind {
		return err
	}
	whole, err := write(ctx)
	if err != nil {
		return err
	}
	return s.db.Restored(ctx, timeline, whole)
}

func (s sessions) Take(ctx context.Context, n session.Known) ([]byte, error) {
	var sealed []byte
	k := n.Key
	err := s.db.Row(ctx, "delete from session_values where tenant = $1 and owner = $2 and id = $3 and epoch = $4 returning sealed", []any{k.Tenant, k.Owner.ID, k.ID, int64(n.Home - 1)}, &sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	raw, err := s.values.Open(nil, nil, sealed, aboutValues(k))
	if err != nil {
		return []byte{}, nil // as what cannot be read
	}
	return raw, nil
}

// raise adds to a session, and begins anew if that has ended.
const raise = `insert into sessions as s (tenant, owner, id, labels, top, raised, readers, used)
values ($1, $2, $3, $5, $6, $7, array[$8::text], clock_timestamp())
on conflict (tenant, owner, id) do update set (labels, top, raised, readers, used) = (
	select case when fresh then array(select distinct unnest(s.labels || excluded.labels)) else excluded.labels end,
		fresh and s.top or excluded.top,
		case when fresh then excluded.raised || s.raised else excluded.raised end,
		case when fresh then array(select distinct unnest(s.readers || excluded.readers)) else excluded.readers end,
		clock_timestamp()
	from (select s.used > clock_timestamp() - $4 * interval '1 microsecond' as fresh) as is_fresh)
returning ` + columns + `, (select gen from meta)`

func (s sessions) Raise(ctx context.Context, k gate.SessionKey, ttl time.Duration, r session.Rise) (session.Known, error) {
	raised := map[string]string{}
	for _, name := range r.Labels {
		raised[name] = r.Call
	}
	if r.Top {
		raised[""] = r.Call
	}
	text, err := json.Marshal(raised) // a pooler's connections do not tell the types of columns
	if err != nil {
		return session.Known{}, err
	}
	n := session.Known{Key: k}
	err = s.db.Row(ctx, raise, []any{
		k.Tenant, k.Owner.ID, k.ID, ttl.Microseconds(), append([]string{}, r.Labels...), r.Top, string(text), r.Reader,
	}, append(scan(&n), &n.Generation)...)
	n.Labels = gate.NewLabels(n.Labels...)
	return n, err
}

func (s sessions) Reset(ctx context.Context, k gate.SessionKey) error {
	_, err := s.db.Exec(ctx, `with now as (update meta set gen = gen + 1),
		handed as (delete from session_values where tenant = $1 and owner = $2 and id = $3)
		update sessions set labels = '{}', top = false, raised = '{}', readers = '{}', resets = resets + 1, reset_at = clock_timestamp(), used = clock_timestamp()
		where tenant = $1 and owner = $2 and id = $3`, k.Tenant, k.Owner.ID, k.ID)
	return err
}

func (s sessions) All(ctx context.Context, ttl time.Duration, reset bool) (all []session.Known, err error) {
	err = s.db.Rows(ctx, `select s.tenant, s.owner, s.id, `+columns+`, (select gen from meta) from sessions s
		where s.used > clock_timestamp() - $1 * interval '1 microsecond' and (not $2 or s.resets > 0)`, []any{ttl.Microseconds(), reset}, func(row pgx.CollectableRow) error {
		var n session.Known
		err := row.Scan(append([]any{&n.Key.Tenant, &n.Key.Owner.ID, &n.Key.ID}, append(scan(&n), &n.Generation)...)...)
		n.Labels = gate.NewLabels(n.Labels...)
		all = append(all, n)
		return err
	})
	return all, err
}

// sweep removes sessions that ended long ago, and homes and values that were as long not used.
func (s *Store) sweep(ctx context.Context, ttl time.Duration) error {
	for _, table := range []string{"sessions", "homes", "session_values"} {
		if _, err := s.db.Exec(ctx, "delete from "+table+" where used < clock_timestamp() - $1 * interval '2 microseconds'", ttl.Microseconds()); err != nil {
			return err
		}
	}
	for _, table := range []string{"leases", "rates", "kv"} {
		if _, err := s.db.Exec(ctx, "delete from "+table+" where until < clock_timestamp()"); err != nil {
			return err
		}
	}
	return nil
}
