package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// A Finding is what one look at a database came to.
type Finding struct {
	Of    string // what was looked at
	Found string
	Err   error // what is wrong, and what to do; nil if nothing is
}

// Check looks whether a gateway can use a database, and changes nothing. What cannot be looked at, since
// something before it is wrong, is left out.
func Check(ctx context.Context, o Options) (all []Finding) {
	var version string
	d, err := connect(ctx, o, func(d *DB) error {
		return d.Row(ctx, "select current_setting('server_version')", nil, &version)
	})
	if err != nil {
		return []Finding{{Of: "database", Err: err}}
	}
	defer d.pool.Close()
	add := func(of, found string, err error) { all = append(all, Finding{of, found, d.advise(err)}) }
	add("database", fmt.Sprintf("PostgreSQL %s at %s", version, d.host()), nil)
	add("clock", "that of this machine and the database's are alike", d.checkClock(ctx))
	add("durability", "what is committed outlives a crash", d.checkDurability(ctx))
	there, err := d.there(ctx)
	if err == nil && !there {
		add("schema", "the database is empty: the first gateway creates the tables", nil)
		add("rights", "the user may create tables", d.mayCreate(ctx))
		return all
	}
	if err = cmp.Or(err, d.mayWrite(ctx)); err != nil {
		add("rights", "", err)
		return all
	}
	add("rights", "the user may read and write all tables", nil)
	have, err := d.step(ctx)
	if err = cmp.Or(err, current(have)); err != nil {
		add("schema", "", err)
		return all
	}
	add("schema", fmt.Sprintf("at step %d, as this version needs it", have), nil)
	add("secret", "that of all gateways", d.holdsSecret(ctx))
	return all
}

// Migrate brings the schema up to date, and returns the steps that it had and has.
func Migrate(ctx context.Context, o Options) (had, has int, err error) {
	d, err := connect(ctx, o, func(d *DB) (err error) {
		had, err = d.migrate(ctx, steps)
		return err
	})
	if err == nil {
		d.pool.Close()
	}
	return had, len(steps), err
}

// checkDurability refuses a database that confirms what a crash undoes, without a trace.
func (d *DB) checkDurability(ctx context.Context) error {
	var commit string
	err := d.Row(ctx, "select current_setting('synchronous_commit')", nil, &commit)
	if err == nil && commit == "off" {
		return errors.New("synchronous_commit is off: a crash of the database would undo labels and revocations that gateways rely on; run alter role USER set synchronous_commit = on")
	}
	return err
}

func (d *DB) mayCreate(ctx context.Context) error {
	var may bool
	err := d.Row(ctx, "select coalesce(has_schema_privilege(current_schema(), 'create'), false)", nil, &may)
	if err == nil && !may {
		return errors.New("the user may not create tables; run `wasmgate store migrate` with the URL of a user that may")
	}
	return err
}

// mayWrite refuses a user that lacks a right on a table that there is.
func (d *DB) mayWrite(ctx context.Context) error {
	var lacking []string
	err := d.Row(ctx, `select coalesce(array_agg(t order by t), '{}') from unnest($1::text[]) t
		where not (has_table_privilege(to_regclass(t), 'select') and has_table_privilege(to_regclass(t), 'insert')
			and has_table_privilege(to_regclass(t), 'update') and has_table_privilege(to_regclass(t), 'delete'))`, []any{tables()}, &lacking)
	if err == nil && len(lacking) > 0 {
		return fmt.Errorf("the user lacks rights on %s; run grant select, insert, update, delete on all tables in schema public to USER, as their owner", strings.Join(lacking, ", "))
	}
	return err
}
