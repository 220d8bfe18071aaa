package postgres

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/internal/pg"
)

// approvals keeps a row for each request. Its state and question are sealed by the secret of the
// gateways: the other columns find the row, and say nothing that a gateway believes.
type approvals struct {
	db   *pg.DB
	seal cipher.AEAD
	mac  []byte // the key of the digests that stand for bindings
	end  func()
	over <-chan struct{} // closed once this gateway lets go of calls
}

const (
	// claimed is how long a gateway has the right to answer a question, and to record a new one. It may
	// die meanwhile.
	claimed = "interval '10 seconds'"
	// look is how often waiting calls look for an answer.
	look = 250 * time.Millisecond
)

// Approvals are the questions that all gateways ask.
func (s *Store) Approvals() (approval.Store, error) {
	seal, err := s.seal("wasmgate approvals 1")
	if err != nil {
		return nil, err
	}
	mac, err := s.db.Key("wasmgate approvals binding 1")
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	return &approvals{db: s.db, seal: seal, mac: mac, end: sync.OnceFunc(func() { close(over) }), over: over}, nil
}

// seal returns what seals columns for a purpose.
func (s *Store) seal(purpose string) (cipher.AEAD, error) {
	key, err := s.db.Key(purpose)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// bind returns what stands for a binding: from a digest of arguments they could be guessed.
func (a *approvals) bind(binding string) []byte {
	h := hmac.New(sha256.New, a.mac)
	h.Write([]byte(binding))
	return h.Sum(nil)
}

func (a *approvals) open(id string, body []byte) (k approval.Kept, err error) {
	raw, err := a.seal.Open(nil, nil, body, []byte(id))
	if err == nil {
		k, err = approval.Decode(raw)
	}
	if err != nil {
		return k, fmt.Errorf("approval %s cannot be read: its row was changed, or is of another version: %w", id, err)
	}
	return k, nil
}

// insert adds a request.
func (a *approvals) insert(ctx context.Context, tx pgx.Tx, k approval.Kept, binding string) error {
	raw, err := k.Encode()
	if err != nil {
		return err
	}
	c := k.Question.Call
	_, err = tx.Exec(ctx, `insert into approvals (id, binding, in_set, tenant, owner, open, known, size, body, asked, expires)
		values ($1, $2, $3, $4, $5, true, $6, $7, $8, $9, $10)`, k.ID, a.bind(binding), k.InSet, c.Who.Tenant, c.Who.ID, k.Known,
		int64(len(c.Args.Raw())), a.seal.Seal(nil, nil, raw, []byte(k.ID)), k.Asked, k.Expires)
	return err
}

// a row is a request, and what the database knows of its time.
type row struct {
	approval.Kept
	expired, busy bool
}

// change changes a request while no other gateway does. It is nil if there is none; what f refuses is
// not kept.
func (a *approvals) change(ctx context.Context, id string, f func(r *row) error) error {
	var refused error
	err := a.db.Within(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var body []byte
		var now time.Time
		var r row
		err := tx.QueryRow(ctx, "select body, clock_timestamp(), coalesce(busy > clock_timestamp() - "+claimed+", false) from approvals where id = $1 for update", id).
			Scan(&body, &now, &r.busy)
		if errors.Is(err, pgx.ErrNoRows) {
			refused = f(nil)
			return nil
		}
		if err != nil {
			return err
		}
		if r.Kept, err = a.open(id, body); err != nil {
			return err
		}
		r.expired = !now.Before(r.Expires)
		if refused = f(&r); refused != nil {
			return nil
		}
		raw, err := r.Encode()
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "update approvals set body = $2, open = $3, known = $4, busy = case when $5 then clock_timestamp() end where id = $1",
			id, a.seal.Seal(nil, nil, raw, []byte(id)), r.Open(), r.Known, r.busy)
		return err
	})
	return cmp.Or(err, refused)
}

func (a *approvals) Ask(ctx context.Context, q gate.Question, id string, expire time.Duration) (r approval.Request, fresh bool, err error) {
	binding := q.Binding()
	digest := a.bind(binding)
	var refused error
	err = a.db.Within(ctx, func(ctx context.Context, tx pgx.Tx) error {
		// Calls that ask the same wait for each other.
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", int64(binary.BigEndian.Uint64(digest))); err != nil {
			return err
		}
		var known string
		var body []byte
		err := tx.QueryRow(ctx, `select id, body from approvals where binding = $1 and not in_set and expires > clock_timestamp()
			and (known or asked > clock_timestamp() - `+claimed+`) order by asked desc limit 1`, digest).Scan(&known, &body)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if err == nil {
			k, err := a.open(known, body)
			if err != nil || k.Serves(q.Call.ID) {
				r = k.Request
				return err
			}
		}
		var now time.Time
		var ofOne, ofAll, size int64
		err = tx.QueryRow(ctx, `select clock_timestamp(), count(*) filter (where tenant = $1 and owner = $2), count(*), coalesce(sum(size), 0)::bigint
			from approvals where open and expires > clock_timestamp()`, q.Call.Who.Tenant, q.Call.Who.ID).Scan(&now, &ofOne, &ofAll, &size)
		if err != nil {
			return err
		}
		if refused = approval.TooMany(ofOne+int64(len(q.Set)), ofAll, size+int64(len(q.Call.Args.Raw()))); refused != nil {
			return nil
		}
		k := approval.NewKept(id, q, now.UTC(), expire)
		r, fresh = k.Request, true
		return a.insert(ctx, tx, k, binding)
	})
	if err = cmp.Or(err, refused); err != nil {
		return approval.Request{}, false, err
	}
	return r, fresh, nil
}

func (a *approvals) Asked(ctx context.Context, id string, recorded bool) error {
	if !recorded {
		_, err := a.db.Exec(ctx, "delete from approvals where id = $1", id)
		return err
	}
	return a.change(ctx, id, func(r *row) error {
		if r != nil {
			r.Known = true
		}
		return nil
	})
}

func (a *approvals) Announce(ctx context.Context, set string, all []approval.Request) error {
	return a.db.Within(ctx, func(ctx context.Context, tx pgx.Tx) error {
		for _, r := range all {
			if err := a.insert(ctx, tx, approval.Kept{Request: r, Known: true}, approval.SetBinding(r.Question)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *approvals) Announced(ctx context.Context, q gate.Question) (r approval.Request, ok bool, err error) {
	if len(q.Set) > 0 {
		return r, false, nil
	}
	all, err := a.read(ctx, "binding = $1 and in_set", a.bind(approval.SetBinding(q)))
	for _, k := range all {
		if k.Usable(q.Call.ID) {
			return k.Request, true, err
		}
	}
	return r, false, err
}

// read returns requests that have not expired.
func (a *approvals) read(ctx context.Context, where string, args ...any) (all []approval.Kept, err error) {
	err = a.db.Rows(ctx, "select id, body, clock_timestamp() from approvals where expires > clock_timestamp() and "+where, args, func(row pgx.CollectableRow) error {
		var id string
		var body []byte
		var now time.Time
		if err := row.Scan(&id, &body, &now); err != nil {
			return err
		}
		k, err := a.open(id, body)
		if err == nil && now.Before(k.Expires) {
			all = append(all, k)
		}
		return err
	})
	return all, err
}

func (a *approvals) Get(ctx context.Context, id string) (r approval.Request, ok bool, err error) {
	all, err := a.read(ctx, "id = $1", id)
	if err != nil || len(all) == 0 {
		return r, false, err
	}
	return all[0].Request, true, nil
}

func (a *approvals) Show(ctx context.Context, id string) error {
	_, err := a.db.Exec(ctx, "update approvals set shown = clock_timestamp() where id = $1", id)
	return err
}

func (a *approvals) Shown(ctx context.Context, id string) (time.Duration, error) {
	var took int64
	err := a.db.Row(ctx, "select (extract(epoch from clock_timestamp() - coalesce(shown, clock_timestamp())) * 1000000)::bigint from approvals where id = $1", []any{id}, &took)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return time.Duration(took) * time.Microsecond, err
}

func (a *approvals) Closed(ctx context.Context, id, word string) error {
	return a.change(ctx, id, func(r *row) error {
		if r != nil {
			r.Closed = word
		}
		return nil
	})
}

func (a *approvals) Answer(ctx context.Context, id string) (got approval.Request, err error) {
	err = a.change(ctx, id, func(r *row) error {
		if r == nil || r.expired {
			return approval.Unknown(id)
		}
		if err := r.Answerable(r.busy); err != nil {
			return err
		}
		r.busy, got = true, r.Request
		return nil
	})
	return got, err
}

func (a *approvals) Answered(ctx context.Context, answered approval.Request, recorded bool) error {
	return a.change(ctx, answered.ID, func(r *row) error {
		if r == nil {
			return approval.Unknown(answered.ID)
		}
		r.busy = false
		if !recorded {
			return nil
		}
		return r.Settle(answered, r.expired)
	})
}

// Wait looks for the answer now and then: a notification could be missed.
func (a *approvals) Wait(ctx context.Context, id string) {
	t := time.NewTicker(look)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.over:
			return
		case <-t.C:
		}
		if r, ok, err := a.Get(ctx, id); err == nil && (!ok || r.State != approval.StateRequested) {
			return
		}
	}
}

func (a *approvals) Redeem(ctx context.Context, id, call string) (got approval.Request, again bool, err error) {
	err = a.change(ctx, id, func(r *row) (err error) {
		if r == nil {
			r = &row{expired: true}
		}
		again, err = r.Redeem(call, r.expired)
		got = r.Request
		return err
	})
	return got, again, err
}

func (a *approvals) Spoil(ctx context.Context, id string) error {
	return a.change(ctx, id, func(r *row) error {
		if r != nil {
			r.User = ""
		}
		return nil
	})
}

func (a *approvals) List(ctx context.Context) (all []approval.Request, err error) {
	kept, err := a.read(ctx, "open and not in_set")
	for _, k := range kept {
		if k.Waits() {
			all = append(all, k.Request)
		}
	}
	slices.SortFunc(all, func(a, b approval.Request) int { return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID)) })
	return all, err
}

// Expire removes a row at one gateway only, which records that.
func (a *approvals) Expire(ctx context.Context) (ended []approval.Request, err error) {
	var unread error
	err = a.db.Rows(ctx, "delete from approvals where expires <= clock_timestamp() returning id, body", nil, func(row pgx.CollectableRow) error {
		var id string
		var body []byte
		if err := row.Scan(&id, &body); err != nil {
			return err
		}
		k, err := a.open(id, body)
		if err == nil && k.Open() {
			k.State = approval.StateExpired
			ended = append(ended, k.Request)
		}
		unread = errors.Join(unread, err)
		return nil
	})
	return ended, errors.Join(err, unread)
}

// End lets go of the calls that wait here. Their questions can be answered at other gateways.
func (a *approvals) End(context.Context) ([]approval.Request, error) {
	a.end()
	return nil, nil
}
