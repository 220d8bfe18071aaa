package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/internal/pg"
)

// A document is a row, and the generation in which it was written.
type document struct {
	db   *pg.DB
	name string
}

func (d document) Name() string { return "the document " + d.name + " of the database" }

func (d document) Load(ctx context.Context, seen uint64) ([]byte, uint64, error) {
	var raw []byte
	var generation uint64
	err := d.db.Row(ctx, "select body, gen from documents where name = $1", []any{d.name}, &raw, &generation)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, 0, nil
	case err != nil || generation == seen:
		return nil, generation, err
	}
	return raw, generation, nil
}

// Change locks the row, then the generation: changes wait for each other, and commit in the
// order of their generations.
func (d document) Change(ctx context.Context, f func([]byte) ([]byte, error)) error {
	return d.db.Within(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into documents (name) values ($1) on conflict do nothing", d.name); err != nil {
			return err
		}
		var raw []byte
		if err := tx.QueryRow(ctx, "select body from documents where name = $1 for update", d.name).Scan(&raw); err != nil {
			return err
		}
		raw, err := f(raw)
		if err != nil {
			return err
		}
		var body *string
		if raw != nil {
			text := string(raw)
			body = &text
		}
		_, err = tx.Exec(ctx, `with now as (update meta set gen = gen + 1 returning gen)
			update documents set body = $2, gen = now.gen from now where name = $1`, d.name, body)
		return err
	})
}
