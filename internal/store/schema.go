package store

import (
	"context"
	"database/sql"
	"fmt"
)

// versions are the steps from each version of the tables to the next. The version of
// a file is how many it has taken, which SQLite keeps as user_version. A step that was
// released is not changed any more: what comes is added.
var versions = []string{`
CREATE TABLE jobs (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	id      TEXT NOT NULL UNIQUE,
	tenant  TEXT NOT NULL,
	owner   TEXT NOT NULL,
	node    TEXT NOT NULL,
	boot    TEXT NOT NULL,
	tool    TEXT NOT NULL,
	call    TEXT NOT NULL,
	state   TEXT NOT NULL,
	code    TEXT NOT NULL DEFAULT '',
	reason  TEXT NOT NULL DEFAULT '',
	labels  TEXT NOT NULL DEFAULT '[]',
	started INTEGER NOT NULL, -- microseconds since 1970, as all times
	ended   INTEGER NOT NULL DEFAULT 0,
	expires INTEGER NOT NULL DEFAULT 0,
	keep    INTEGER NOT NULL, -- microseconds
	size    INTEGER NOT NULL DEFAULT 0,
	expired INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX jobs_owner ON jobs (tenant, owner, seq);
CREATE INDEX jobs_node ON jobs (node, state, expired);
CREATE TABLE results (
	job INTEGER PRIMARY KEY REFERENCES jobs (seq) ON DELETE CASCADE,
	doc BLOB NOT NULL
) STRICT;
`}

// migrate takes the steps that are left, all or none.
func migrate(ctx context.Context, db *sql.DB, steps []string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing, once it was committed
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch {
	case version == len(steps):
		return nil
	case version > len(steps):
		return fmt.Errorf("a newer wasmgate has written it (version %d, and this one knows %d): use that one, or move the file away to begin without the jobs that it holds", version, len(steps))
	}
	for _, step := range steps[version:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("bring the tables up to date: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(steps))); err != nil {
		return err
	}
	return tx.Commit()
}
