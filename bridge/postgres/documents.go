package postgres

import (
	"bytes"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/internal/pg"
)

// A Document is a small JSON document that all gateways of the database see: a row, and the
// generation in which it was written. It is nil, in generation 0, until it is written. A Document
// may be used from several goroutines, and comes from [Store.Document].
type Document struct {
	db   *pg.DB
	name string
}

// Name says in messages where the document is.
func (d Document) Name() string { return "the document " + d.name + " of the database" }

// Load returns the document and its generation, and no document if that is the generation seen
// already.
func (d Document) Load(ctx context.Context, seen uint64) ([]byte, uint64, error) {
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

// Changed returns the names of the documents that were changed after a generation.
func (s *Store) Changed(ctx context.Context, after uint64) (names []string, err error) {
	err = s.db.Rows(ctx, "select name from documents where gen > $1 order by gen", []any{after}, func(row pgx.CollectableRow) error {
		var name string
		err := row.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

// Names returns the names of the documents that are there and begin with a prefix.
func (s *Store) Names(ctx context.Context, prefix string) (names []string, err error) {
	err = s.db.Rows(ctx, "select name from documents where starts_with(name, $1) and body is not null order by name", []any{prefix}, func(row pgx.CollectableRow) error {
		var name string
		err := row.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

// Change puts what f returns in place of the document, with no other change in between; nil removes
// it. After an error of f, which Change returns, the document is as it was. When Change has
// returned, no gateway admits a call by what was there before.
func (d Document) Change(ctx context.Context, f func([]byte) ([]byte, error)) error {
	// It locks the row, then the generation: changes wait for each other, and commit in the order
	// of their generations.
	return d.db.Within(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into documents (name) values ($1) on conflict do nothing", d.name); err != nil {
			return err
		}
		var raw []byte
		err := tx.QueryRow(ctx, "select body from documents where name = $1 for update", d.name).Scan(&raw)
		if err != nil {
			return err
		}
		before := raw
		if raw, err = f(raw); err != nil || raw != nil && bytes.Equal(raw, before) {
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
