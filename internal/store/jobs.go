package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
)

var _ jobs.Store = (*DB)(nil)

// AddJob implements [jobs.Store].
func (d *DB) AddJob(ctx context.Context, j jobs.Job) error {
	labels, err := encoded(j.Labels)
	if err != nil {
		return err
	}
	_, err = d.sql.ExecContext(ctx,
		`INSERT INTO jobs (id, tenant, owner, node, boot, tool, call, state, labels, started, keep) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		j.ID, j.Owner.Tenant, j.Owner.ID, j.Node, j.Boot, j.Tool, j.Call, j.State, labels, micros(j.Started), j.Keep.Microseconds())
	return d.advise(err)
}

// encoded is how labels are kept: a list of strings in JSON.
func encoded(l gate.Labels) (string, error) {
	b, err := json.Marshal(l)
	return string(b), err
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

// EndJob implements [jobs.Store].
func (d *DB) EndJob(ctx context.Context, j jobs.Job, result gate.Doc) error {
	doc := result.Raw()
	if len(doc) > jobs.MaxResult {
		return fmt.Errorf("job %s: %d bytes: %w", j.ID, len(doc), jobs.ErrTooLarge)
	}
	labels, err := encoded(j.Labels)
	if err != nil {
		return err
	}
	return d.within(ctx, func(tx *sql.Tx) error {
		var seq int64
		err := tx.QueryRowContext(ctx,
			`UPDATE jobs SET state = ?, code = ?, reason = ?, labels = ?, ended = ?, expires = ?, size = ? WHERE id = ? AND state = ? RETURNING seq`,
			j.State, j.Code, j.Reason, labels, micros(j.Ended), micros(j.Expires()), len(doc), j.ID, jobs.Running).Scan(&seq)
		switch {
		case errors.Is(err, sql.ErrNoRows): // it has ended already
			return nil
		case err != nil || len(doc) == 0:
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO results (job, doc) VALUES (?, ?)`, seq, doc)
		return err
	})
}

// within does something in one transaction.
func (d *DB) within(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := d.sql.BeginTx(ctx, nil)
	if err != nil {
		return d.advise(err)
	}
	defer func() { _ = tx.Rollback() }() // nothing, once it was committed
	if err := do(tx); err != nil {
		return d.advise(err)
	}
	return d.advise(tx.Commit())
}

// RemoveJob implements [jobs.Store].
func (d *DB) RemoveJob(ctx context.Context, id string) error {
	_, err := d.sql.ExecContext(ctx, `DELETE FROM jobs WHERE id = ?`, id)
	return d.advise(err)
}

const columns = `id, tenant, owner, node, boot, tool, call, state, code, reason, labels, started, ended, keep, size, expired`

// scan reads the columns of a job, and what comes after them.
func scan(row interface{ Scan(...any) error }, more ...any) (jobs.Job, error) {
	var j jobs.Job
	var labels []byte
	var started, ended, keep int64
	to := append([]any{
		&j.ID, &j.Owner.Tenant, &j.Owner.ID, &j.Node, &j.Boot, &j.Tool, &j.Call, &j.State, &j.Code, &j.Reason, &labels,
		&started, &ended, &keep, &j.Size, &j.Expired,
	}, more...)
	if err := row.Scan(to...); err != nil {
		return jobs.Job{}, err
	}
	j.Started, j.Ended, j.Keep = moment(started), moment(ended), time.Duration(keep)*time.Microsecond
	if err := json.Unmarshal(labels, &j.Labels); err != nil {
		return jobs.Job{}, fmt.Errorf("job %s: its labels cannot be read: %w", j.ID, err)
	}
	return j, nil
}

// Job implements [jobs.Store].
func (d *DB) Job(ctx context.Context, who gate.Owner, id string) (jobs.Job, error) {
	j, err := scan(d.sql.QueryRowContext(ctx, `SELECT `+columns+` FROM jobs WHERE id = ? AND tenant = ? AND owner = ?`, id, who.Tenant, who.ID))
	return j, d.found(err, id)
}

// found turns the error of a query without a row into the error that a [jobs.Store] returns.
func (d *DB) found(err error, id string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return &jobs.HandleError{ID: id}
	}
	return d.advise(err)
}

// JobResult implements [jobs.Store].
func (d *DB) JobResult(ctx context.Context, who gate.Owner, id string) (jobs.Job, gate.Doc, error) {
	var raw []byte
	j, err := scan(d.sql.QueryRowContext(ctx,
		`SELECT `+columns+`, doc FROM jobs LEFT JOIN results ON job = seq WHERE id = ? AND tenant = ? AND owner = ?`, id, who.Tenant, who.ID), &raw)
	if err != nil || len(raw) == 0 {
		return j, gate.Doc{}, d.found(err, id)
	}
	doc, err := gate.ParseDoc(raw)
	if err != nil {
		return jobs.Job{}, gate.Doc{}, d.advise(&damage{"the result of job " + id + ": " + err.Error()})
	}
	return j, doc, nil
}

// Jobs implements [jobs.Store].
func (d *DB) Jobs(ctx context.Context, who gate.Owner, after string, limit int) ([]jobs.Job, error) {
	const newest = int64(1) << 62
	before := newest
	if after != "" {
		err := d.sql.QueryRowContext(ctx, `SELECT seq FROM jobs WHERE id = ? AND tenant = ? AND owner = ?`, after, who.Tenant, who.ID).Scan(&before)
		if err != nil {
			return nil, d.found(err, after)
		}
	}
	rows, err := d.sql.QueryContext(ctx,
		`SELECT `+columns+` FROM jobs WHERE tenant = ? AND owner = ? AND seq < ? ORDER BY seq DESC LIMIT ?`, who.Tenant, who.ID, before, limit)
	if err != nil {
		return nil, d.advise(err)
	}
	defer rows.Close()
	var all []jobs.Job
	for rows.Next() {
		j, err := scan(rows)
		if err != nil {
			return nil, d.advise(err)
		}
		all = append(all, j)
	}
	return all, d.advise(rows.Err())
}

// AbandonJobs implements [jobs.Store].
func (d *DB) AbandonJobs(ctx context.Context, node, boot string, now time.Time, reason string) (int, error) {
	res, err := d.sql.ExecContext(ctx,
		`UPDATE jobs SET state = ?, code = ?, reason = ?, ended = ?, expires = ? + keep WHERE node = ? AND boot <> ? AND state = ?`,
		jobs.Failed, codes.Cancelled, reason, micros(now), micros(now), node, boot, jobs.Running)
	if err != nil {
		return 0, d.advise(err)
	}
	n, err := res.RowsAffected()
	return int(n), d.advise(err)
}

// CountJobs implements [jobs.Store].
func (d *DB) CountJobs(ctx context.Context, node string) (jobs.Counts, error) {
	var c jobs.Counts
	err := d.sql.QueryRowContext(ctx,
		`SELECT COUNT(*) FILTER (WHERE state = ?1), COUNT(*) FILTER (WHERE state <> ?1 AND NOT expired), COALESCE(SUM(size), 0) FROM jobs WHERE node = ?2`,
		jobs.Running, node).Scan(&c.Running, &c.Kept, &c.Bytes)
	return c, d.advise(err)
}

// TrimJobs implements [jobs.Store].
func (d *DB) TrimJobs(ctx context.Context, node string, now time.Time, b jobs.Bounds) error {
	return d.within(ctx, func(tx *sql.Tx) error {
		return errors.Join(
			giveUp(ctx, tx, `node = ? AND state <> ? AND NOT expired AND expires <= ?`, node, jobs.Running, micros(now)),
			forget(ctx, tx, `node = ? AND expired AND expires <= ?`, node, micros(now.Add(-b.After))),
			shrink(ctx, tx, b.Bytes, `SELECT COALESCE(SUM(size), 0) FROM jobs WHERE node = ?`, node, func() error {
				return giveUp(ctx, tx, `seq = (SELECT seq FROM jobs WHERE node = ?1 AND size > 0 AND (tenant, owner) =
					(SELECT tenant, owner FROM jobs WHERE node = ?1 GROUP BY tenant, owner ORDER BY SUM(size) DESC LIMIT 1)
					ORDER BY ended, seq LIMIT 1)`, node)
			}),
			shrink(ctx, tx, int64(b.Jobs), `SELECT COUNT(*) FROM jobs WHERE node = ? AND state <> 'running'`, node, func() error {
				return forget(ctx, tx, `seq = (SELECT seq FROM jobs WHERE node = ?1 AND state <> 'running' AND (tenant, owner) =
					(SELECT tenant, owner FROM jobs WHERE node = ?1 AND state <> 'running' GROUP BY tenant, owner ORDER BY COUNT(*) DESC LIMIT 1)
					ORDER BY expired DESC, ended, seq LIMIT 1)`, node)
			}),
		)
	})
}

// giveUp gives up the outcomes of jobs.
func giveUp(ctx context.Context, tx *sql.Tx, where string, args ...any) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM results WHERE job IN (SELECT seq FROM jobs WHERE `+where+`)`, args...)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE jobs SET expired = 1, size = 0 WHERE `+where, args...)
	return err
}

func forget(ctx context.Context, tx *sql.Tx, where string, args ...any) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM jobs WHERE `+where, args...)
	return err
}

// shrink repeats something until what a query measures of a node is within a bound.
func shrink(ctx context.Context, tx *sql.Tx, most int64, measure, node string, less func() error) error {
	last := int64(-1)
	for {
		var n int64
		if err := tx.QueryRowContext(ctx, measure, node).Scan(&n); err != nil {
			return err
		}
		if n <= most || n == last { // or what is left cannot go
			return nil
		}
		last = n
		if err := less(); err != nil {
			return err
		}
	}
}
