package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/pg"
)

// readsAtOnce is how many queries are under way at once. While they are, calls that come wait for the next one, which reads for all of them: the busier
// the gateway, the less of the database's and its own time each call takes.
const readsAtOnce = 1

// reads are the reads of sessions. Each call begins one before it is decided, and one query answers all that wait for it. It begins after
// they did, so that each knows what was committed before. The zero reads has none.
type reads struct {
	mu   sync.Mutex
	next *reading // has not begun; nil if nothing waits
	busy int      // readings under way
}

// A question is about one session, which ends after ttl without use.
type question struct {
	gate.SessionKey
	ttl time.Duration
}

// An answer is what the database has of a session. Many calls read one answer.
type answer struct {
	known                session.Known
	mine                 bool // this gateway has its name
	touchHome            bool
	fresh, touch, behind *bool // nil without a row
	doubt                int
}

// A reading is one query.
type reading struct {
	answers map[question]answer // once done; before, by what was asked
	done    chan struct{}
	err     error
}

// read answers one question.
func (r *reads) read(ctx context.Context, db *pg.DB, q question) (answer, error) {
	for _, part := range []string{q.Tenant, q.Owner.ID, q.ID} {
		if !utf8.ValidString(part) || strings.ContainsRune(part, 0) { // would fail the query of all
			return answer{}, &pg.Error{Err: errors.New("the name of a session holds what no database keeps: a zero byte, or what is not UTF-8")}
		}
	}
	mine := r.join(ctx, db, q)
	select {
	case <-mine.done:
		return mine.answers[q], mine.err
	case <-ctx.Done():
		return answer{}, &pg.Error{Err: ctx.Err()}
	}
}

// join returns the reading that answers a question, and begins it if fewer are under way than may be.
func (r *reads) join(ctx context.Context, db *pg.DB, q question) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &reading{answers: map[question]answer{}, done: make(chan struct{})}
		if r.busy < readsAtOnce {
			r.busy++
			go r.run(context.WithoutCancel(ctx), db)
		}
	}
	r.next.answers[q] = answer{}
	return r.next
}

// run carries out readings until none waits.
func (r *reads) run(ctx context.Context, db *pg.DB) {
	for next := r.begin(); next != nil; next = r.begin() {
		next.err = next.query(ctx, db)
		close(next.done)
	}
}

// begin takes the reading that waits. Nothing joins it any more.
func (r *reads) begin() *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.next
	r.next = nil
	if next == nil {
		r.busy--
	}
	return next
}

// readSessions is one statement, so that what it returns has held at one moment: each session, the generation, whether this gateway still has its name,
// and where the home of the owner is. After a promotion a gateway that was home all the time, and a reset, vouch for a session.
const readSessions = `select q.n,
	coalesce(s.labels, '{}'), coalesce(s.top, false), coalesce(s.raised, '{}'), coalesce(s.readers, '{}'), coalesce(s.resets, 0),
	m.gen, n.boot is not distinct from $6, s.used > clock_timestamp() - q.ttl * interval '1 microsecond',
	s.used < clock_timestamp() - q.ttl * interval '0.1 microsecond',
	coalesce(h.epoch, 0), coalesce(h.node <> $5 or h.boot <> $6, false), v.id is not null, coalesce(h.used < clock_timestamp() - $7 * interval '1 microsecond', false),
	m.timeline <> ` + pg.Timeline + ` or abs(n.timeline) <> m.timeline,
	case when m.promoted is null or m.promoted < clock_timestamp() - q.ttl * interval '1 microsecond' or s.reset_at > coalesce(m.lost, m.promoted) then 0
		when h.since < coalesce(m.lost, m.promoted) and exists (select from nodes x where x.node = h.node and x.boot = h.boot and x.timeline = m.timeline) then 0
		else ` + pg.Doubt + ` end
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) with ordinality as q(tenant, owner, id, ttl, n)
	cross join meta m
	left join sessions s on s.tenant = q.tenant and s.owner = q.owner and s.id = q.id
	left join nodes n on n.node = $5
	left join homes h on h.tenant = q.tenant and h.owner = q.owner
	left join session_values v on v.tenant = q.tenant and v.owner = q.owner and v.id = q.id and v.epoch = h.epoch - 1`

// query answers all that was asked.
func (r *reading) query(ctx context.Context, db *pg.DB) error {
	asked := slices.Collect(maps.Keys(r.answers))
	var tenants, owners, ids []string
	var ttls []int64
	for _, q := range asked {
		tenants, owners, ids, ttls = append(tenants, q.Tenant), append(owners, q.Owner.ID), append(ids, q.ID), append(ttls, q.ttl.Microseconds())
	}
	node, boot := db.Node()
	rows := 0
	err := db.Rows(ctx, readSessions, []any{tenants, owners, ids, ttls, node, boot, homeTouch.Microseconds()}, func(row pgx.CollectableRow) error {
		var n int64
		var a answer
		k := &a.known
		err := row.Scan(append(append([]any{&n}, scan(k)...), &k.Generation, &a.mine, &a.fresh, &a.touch, &k.Home, &k.Elsewhere, &k.Handed, &a.touchHome, &a.behind, &a.doubt)...)
		if err == nil {
			k.Key, k.Labels = asked[n-1].SessionKey, gate.NewLabels(k.Labels...)
			r.answers[asked[n-1]] = a
			rows++
		}
		return err
	})
	if err == nil && rows != len(asked) {
		err = &pg.Error{Err: errors.New("the database answers fewer sessions than were asked for: its table meta has no row")}
	}
	return err
}
