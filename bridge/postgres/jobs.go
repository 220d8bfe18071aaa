package postgres

import (
	"context"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/pg"
)

// Jobs keeps a row for each job. Its result and labels are sealed by the secret of the gateways.
type Jobs struct {
	db   *pg.DB
	aead cipher.AEAD
}

var _ jobs.Shared = (*Jobs)(nil)

// Jobs are those of all gateways.
func (s *Store) Jobs() (*Jobs, error) {
	aead, err := s.seal("wasmgate jobs 1")
	if err != nil {
		return nil, err
	}
	return &Jobs{s.db, aead}, nil
}

// Close does nothing: the store is closed by its owner.
func (j *Jobs) Close() error { return nil }

// about binds what is sealed to a column, a job and its owner.
func about(column, id string, who gate.Owner) []byte {
	return fmt.Appendf(nil, "%s %q %q %q", column, id, who.Tenant, who.ID)
}

func (j *Jobs) open(column string, sealed []byte, of jobs.Job) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	raw, err := j.aead.Open(nil, nil, sealed, about(column, of.ID, of.Owner))
	if err != nil {
		return nil, &pg.Error{Err: fmt.Errorf("job %s cannot be read: its row was changed: %w", of.ID, err)}
	}
	return raw, nil
}

// micros is how times are kept; 0 is the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func moment(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros)
}

// AddJob implements [jobs.Store].
func (j *Jobs) AddJob(ctx context.Context, n jobs.Job) error {
	_, err := j.db.Exec(ctx, `insert into jobs (id, tenant, owner, node, boot, tool, call, state, started, keep) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		n.ID, n.Owner.Tenant, n.Owner.ID, n.Node, n.Boot, n.Tool, n.Call, string(n.State), micros(n.Started), n.Keep.Microseconds())
	return err
}

// EndJob implements [jobs.Store].
func (j *Jobs) EndJob(ctx context.Context, n jobs.Job, result gate.Doc) error {
	raw := result.Raw()
	if len(raw) > jobs.MaxResult {
		return fmt.Errorf("job %s: %d bytes: %w", n.ID, len(raw), jobs.ErrTooLarge)
	}
	labels, err := json.Marshal(n.Labels)
	if err != nil {
		return err
	}
	labels = j.aead.Seal(nil, nil, labels, about("labels", n.ID, n.Owner))
	var doc []byte
	if len(raw) > 0 {
		doc = j.aead.Seal(nil, nil, raw, about("doc", n.ID, n.Owner))
	}
	_, err = j.db.Exec(ctx, `update jobs set state = $2, code = $3, reason = $4, labels = $5, doc = $6, ended = $7, expires = $8, size = $9
		where id = $1 and state = 'running'`, n.ID, string(n.State), n.Code, n.Reason, labels, doc, micros(n.Ended), micros(n.Expires()), int64(len(raw)))
	return err
}

// RemoveJob implements [jobs.Store].
func (j *Jobs) RemoveJob(ctx context.Context, id string) error {
	_, err := j.db.Exec(ctx, "delete from jobs where id = $1", id)
	return err
}

const jobColumns = `id, tenant, owner, node, boot, tool, call, state, code, reason, labels, started, ended, keep, size, expired`

// read returns a job, and what comes after its columns.
func (j *Jobs) read(row interface{ Scan(...any) error }, more ...any) (n jobs.Job, err error) {
	var labels []byte
	var started, ended, keep int64
	var state string
	err = row.Scan(append([]any{
		&n.ID, &n.Owner.Tenant, &n.Owner.ID, &n.Node, &n.Boot, &n.Tool, &n.Call, &state, &n.Code, &n.Reason, &labels, &started, &ended, &keep, &n.Size, &n.Expired,
	}, more...)...)
	if err != nil {
		return jobs.Job{}, err
	}
	n.State = jobs.State(state)
	n.Started, n.Ended, n.Keep = moment(started), moment(ended), time.Duration(keep)*time.Microsecond
	raw, err := j.open("labels", labels, n)
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &n.Labels)
	}
	return n, err
}

// Job implements [jobs.Store].
func (j *Jobs) Job(ctx context.Context, who gate.Owner, id string) (jobs.Job, error) {
	n, _, err := j.one(ctx, who, id, "null::bytea")
	return n, err
}

// JobResult implements [jobs.Store].
func (j *Jobs) JobResult(ctx context.Context, who gate.Owner, id string) (jobs.Job, gate.Doc, error) {
	n, sealed, err := j.one(ctx, who, id, "doc")
	if err != nil {
		return n, gate.Doc{}, err
	}
	raw, err := j.open("doc", sealed, n)
	if err != nil || raw == nil {
		return n, gate.Doc{}, err
	}
	doc, err := gate.ParseDoc(raw)
	return n, doc, err
}

func (j *Jobs) one(ctx context.Context, who gate.Owner, id, doc string) (n jobs.Job, sealed []byte, err error) {
	found := false
	err = j.db.Rows(ctx, "select "+jobColumns+", "+doc+" from jobs where id = $1 and tenant = $2 and owner = $3", []any{id, who.Tenant, who.ID}, func(row pgx.CollectableRow) (err error) {
		found = true
		n, err = j.read(row, &sealed)
		return err
	})
	if err == nil && !found {
		err = &jobs.HandleError{ID: id}
	}
	return n, sealed, err
}

// Jobs implements [jobs.Store].
func (j *Jobs) Jobs(ctx context.Context, who gate.Owner, after string, limit int) (all []jobs.Job, err error) {
	before := int64(1) << 62
	if after != "" {
		err := j.db.Row(ctx, "select seq from jobs where id = $1 and tenant = $2 and owner = $3", []any{after, who.Tenant, who.ID}, &before)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, &jobs.HandleError{ID: after}
		}
		if err != nil {
			return nil, err
		}
	}
	err = j.db.Rows(ctx, "select "+jobColumns+" from jobs where tenant = $1 and owner = $2 and seq < $3 order by seq desc limit $4",
		[]any{who.Tenant, who.ID, before, limit}, func(row pgx.CollectableRow) error {
			n, err := j.read(row)
			all = append(all, n)
			return err
		})
	return all, err
}

// lose ends running jobs as failed.
const lose = `update jobs set state = 'failed', code = '` + codes.Cancelled + `', reason = $1, ended = $2, expires = $2 + keep where state = 'running' and `

// AbandonJobs implements [jobs.Store].
func (j *Jobs) AbandonJobs(ctx context.Context, node, boot string, now time.Time, reason string) (int, error) {
	n, err := j.db.Exec(ctx, lose+"node = $3 and boot <> $4", reason, micros(now), node, boot)
	return int(n), err
}

// LoseJobs implements [jobs.Shared]. A gateway whose lease ended a moment ago may only have been without
// the database.
func (j *Jobs) LoseJobs(ctx context.Context, now time.Time, reason string) (int, error) {
	n, err := j.db.Exec(ctx, lose+`exists (select from nodes n where n.node = jobs.node and n.lease_until < clock_timestamp() - interval '2 minutes')`, reason, micros(now))
	return int(n), err
}

// AskCancel implements [jobs.Shared].
func (j *Jobs) AskCancel(ctx context.Context, who gate.Owner, id, reason string) error {
	_, err := j.db.Exec(ctx, "update jobs set cancel = coalesce(cancel, $4) where id = $1 and tenant = $2 and owner = $3 and state = 'running'", id, who.Tenant, who.ID, reason)
	return err
}

// CancelsAsked implements [jobs.Shared].
func (j *Jobs) CancelsAsked(ctx context.Context, node string) (map[string]string, error) {
	asked := map[string]string{}
	err := j.db.Rows(ctx, "select id, cancel from jobs where node = $1 and state = 'running' and cancel is not null", []any{node}, func(row pgx.CollectableRow) error {
		var id, reason string
		err := row.Scan(&id, &reason)
		asked[id] = reason
		return err
	})
	return asked, err
}

// RunningJobs implements [jobs.Shared].
func (j *Jobs) RunningJobs(ctx context.Context, node string) (all []jobs.Job, err error) {
	err = j.db.Rows(ctx, "select "+jobColumns+" from jobs where node = $1 and state = 'running'", []any{node}, func(row pgx.CollectableRow) error {
		n, err := j.read(row)
		all = append(all, n)
		return err
	})
	return all, err
}

// CountJobs implements [jobs.Store].
func (j *Jobs) CountJobs(ctx context.Context, node string) (c jobs.Counts, err error) {
	err = j.db.Row(ctx, `select count(*) filter (where state = 'running'), count(*) filter (where state <> 'running' and not expired), coalesce(sum(size), 0)::bigint
		from jobs where node = $1`, []any{node}, &c.Running, &c.Kept, &c.Bytes)
	return c, err
}

// TrimJobs implements [jobs.Store].
func (j *Jobs) TrimJobs(ctx context.Context, node string, now time.Time, b jobs.Bounds) error {
	return j.db.Within(ctx, func(ctx context.Context, tx pgx.Tx) error {
		const giveUp = "update jobs set expired = true, size = 0, doc = null where "
		if _, err := tx.Exec(ctx, giveUp+"node = $1 and state <> 'running' and not expired and expires <= $2", node, micros(now)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "delete from jobs where node = $1 and expired and expires <= $2", node, micros(now.Add(-b.After))); err != nil {
			return err
		}
		err := shrink(ctx, tx, b.Bytes, "select coalesce(sum(size), 0)::bigint from jobs where node = $1", node,
			giveUp+`seq = (select seq from jobs where node = $1 and size > 0 and (tenant, owner) =
				(select tenant, owner from jobs where node = $1 group by tenant, owner order by sum(size) desc limit 1) order by ended, seq limit 1)`)
		if err != nil {
			return err
		}
		return shrink(ctx, tx, int64(b.Jobs), "select count(*) from jobs where node = $1 and state <> 'running'", node,
			`delete from jobs where seq = (select seq from jobs where node = $1 and state <> 'running' and (tenant, owner) =
				(select tenant, owner from jobs where node = $1 and state <> 'running' group by tenant, owner order by count(*) desc limit 1)
				order by expired desc, ended, seq limit 1)`)
	})
}

// shrink repeats a statement until what a query measures of a node is within a bound, or cannot shrink.
func shrink(ctx context.Context, tx pgx.Tx, most int64, measure, node, less string) error {
	for last := int64(-1); ; {
		var n int64
		if err := tx.QueryRow(ctx, measure, node).Scan(&n); err != nil {
			return err
		}
		if n <= most || n == last {
			return nil
		}
		last = n
		if _, err := tx.Exec(ctx, less, node); err != nil {
			return err
		}
	}
}
