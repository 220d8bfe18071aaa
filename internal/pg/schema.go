package pg

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// steps bring the schema up to date. A step leaves what the release before it reads and writes:
// it adds tables, and columns that have a default.
var steps = []string{`
create table meta (
	one bool primary key default true check (one),
	gen bigint not null default 0, -- rises with each change by which calls are refused
	secret bytea -- proof of the secret that all gateways have
);
insert into meta default values;
create table nodes (
	node text primary key,
	boot text not null,
	version text not null,
	started timestamptz not null,
	lease_until timestamptz not null
);
create table documents (
	name text primary key,
	body text, -- null once it was removed
	gen bigint not null default 0
);
create table sessions (
	tenant text not null,
	owner text not null,
	id text not null,
	labels text[] not null,
	top bool not null,
	raised jsonb not null,
	readers text[] not null,
	resets bigint not null default 0,
	used timestamptz not null,
	primary key (tenant, owner, id)
) with (fillfactor = 70);
create index sessions_used on sessions (used);
`, `
create table approvals (
	id text primary key,
	binding bytea not null,
	in_set bool not null,
	tenant text not null,
	owner text not null,
	open bool not null,
	known bool not null,
	size bigint not null,
	body bytea not null, -- sealed: the state and the question
	asked timestamptz not null,
	expires timestamptz not null,
	shown timestamptz,
	busy timestamptz
);
create index approvals_binding on approvals (binding);
create index approvals_open on approvals (tenant, owner) where open;
create index approvals_expires on approvals (expires);
`, `
create table jobs (
	seq bigint generated always as identity primary key,
	id text not null unique,
	tenant text not null,
	owner text not null,
	node text not null,
	boot text not null,
	tool text not null,
	call text not null,
	state text not null,
	code text not null default '',
	reason text not null default '',
	labels bytea, -- sealed, as the result
	doc bytea,
	started bigint not null,
	ended bigint not null default 0,
	expires bigint not null default 0,
	keep bigint not null,
	size bigint not null default 0,
	expired bool not null default false,
	cancel text -- why another gateway wants it to end
);
create index jobs_owner on jobs (tenant, owner, seq);
create index jobs_node on jobs (node);
`, `
alter table nodes add column url text not null default ''; -- where it listens for other gateways
create table homes ( -- the gateway that has what the requests of an owner leave in memory
	tenant text not null,
	owner text not null,
	node text not null,
	boot text not null,
	epoch bigint not null default 1, -- rises each time that another gateway, or another run of it, takes over
	used timestamptz not null default clock_timestamp(),
	primary key (tenant, owner)
) with (fillfactor = 70);
`, `
alter table nodes -- what a gateway says of itself with each sign of life
	add column config text not null default '',
	add column policy text not null default '',
	add column audit_seq bigint not null default 0,
	add column audit_head text not null default '',
	add column seen timestamptz not null default clock_timestamp();
`, `
alter table nodes
	add column draining bool not null default false, -- it is to take no home, and gives its own away
	add column busy int not null default 0; -- calls and requests that it answers
create table session_values ( -- where values of a session came from, on the way from one home to the next
	tenant text not null,
	owner text not null,
	id text not null,
	epoch bigint not null, -- of the home that was given up
	sealed bytea not null,
	used timestamptz not null default clock_timestamp(),
	primary key (tenant, owner, id)
);
`, `
create table leases ( -- what one gateway does for all
	name text primary key,
	node text not null,
	boot text not null,
	until timestamptz not null
);
`, `
alter table meta -- see timeline.go
	add column timeline int not null default 0, -- of the server that has written this row
	add column promoted timestamptz, -- when a gateway found that it had risen
	add column kept timestamptz, -- a time from which writes are known to be there still
	add column lost timestamptz; -- the first promotion after which a gateway was gone that might have told what was lost
alter table nodes add column timeline int not null default 0; -- on which it has written its labels again; negative: not all
alter table homes add column since timestamptz not null default now();
alter table sessions add column reset_at timestamptz;
`, `
create table rates ( -- tokens that gateways take portions of
	tenant text not null,
	owner text not null,
	name text not null,
	calls float8 not null,
	bytes float8 not null,
	filled timestamptz not null default clock_timestamp(), -- when both were what they are
	until timestamptz not null default clock_timestamp() + interval '1 minute', -- it is full from then on, which is as good as none
	primary key (tenant, owner, name)
) with (fillfactor = 70);
`, `
create table kv ( -- what modules keep; names may hold bytes that text may not
	tenant bytea not null,
	tool bytea not null,
	key bytea not null,
	value bytea not null, -- sealed
	size int not null, -- of the key and the value
	until timestamptz, -- null has no end
	primary key (tenant, tool, key)
);
create index kv_until on kv (until);
`}

// A step waits this long for calls under way, so that no others wait behind it, and is tried
// again so often.
const (
	stepLock  = "200ms"
	stepTries = 50
)

// created finds the tables of the steps.
var created = regexp.MustCompile(`(?m)^create table (\w+)`)

// tables are those that a gateway uses.
func tables() []string {
	all := []string{"schema_steps"}
	for _, found := range created.FindAllStringSubmatch(strings.Join(steps, "\n"), -1) {
		all = append(all, found[1])
	}
	return all
}

// there reports whether the database has tables.
func (d *DB) there(ctx context.Context) (is bool, err error) {
	return is, d.Row(ctx, "select to_regclass('schema_steps') is not null", nil, &is)
}

// step returns the last step that was taken; 0 in an empty database.
func (d *DB) step(ctx context.Context) (have int, err error) {
	there, err := d.there(ctx)
	if err == nil && there {
		err = d.Row(ctx, "select coalesce(max(step), 0) from schema_steps", nil, &have)
	}
	return have, err
}

// current refuses a schema that is not that of this version.
func current(have int) error {
	switch {
	case have > len(steps):
		return newer(have, len(steps))
	case have < len(steps):
		return fmt.Errorf("the schema is at step %d of %d; run `wasmgate store migrate`, or start a gateway of this version", have, len(steps))
	}
	return nil
}

func newer(have, know int) error {
	return fmt.Errorf("a newer wasmgate has written the schema (step %d, and this one knows %d); run that version, or use another database", have, know)
}

// migrate takes the steps that are left, while no other gateway does, and returns how many there were
// before. If none is left, it needs no right to change tables.
func (d *DB) migrate(ctx context.Context, steps []string) (had int, err error) {
	if had, err = d.step(ctx); err != nil || had == len(steps) {
		return had, err
	}
	for range stepTries {
		err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return take(ctx, tx, steps, d.o.Version) })
		p, ok := errors.AsType[*pgconn.PgError](err)
		switch {
		case ok && p.Code == "42501": // insufficient_privilege
			return had, fmt.Errorf("the schema is at step %d of %d, and the user of the URL may not change it (%s); run `wasmgate store migrate` with the URL of the owner of the tables", had, len(steps), p.Message)
		case !ok || p.Code != "55P03": // lock_timeout
			return had, err
		}
		select {
		case <-ctx.Done():
			return had, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return had, fmt.Errorf("bring the schema up to date: calls under way keep the tables: %w", err)
}

func take(ctx context.Context, tx pgx.Tx, steps []string, version string) error {
	_, err := tx.Exec(ctx, "set local statement_timeout = '60s'; set local lock_timeout = '60s'; select pg_advisory_xact_lock(hashtext('wasmgate schema'))", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "create table if not exists schema_steps (step int primary key, at timestamptz not null default clock_timestamp(), by_version text not null)")
	if err != nil {
		return err
	}
	var have int
	if err := tx.QueryRow(ctx, "select coalesce(max(step), 0) from schema_steps").Scan(&have); err != nil {
		return err
	}
	if have > len(steps) {
		return newer(have, len(steps))
	}
	for i, step := range steps[have:] {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '"+stepLock+"'; "+step, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("bring the schema up to date: step %d: %w", have+i+1, err)
		}
		if _, err := tx.Exec(ctx, "insert into schema_steps (step, by_version) values ($1, $2)", have+i+1, version); err != nil {
			return err
		}
	}
	return nil
}
