package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Memory is the name of a database that is kept in no file.
const Memory = ":memory:"

// A DB keeps jobs. Use it from several goroutines.
type DB struct {
	sql  *sql.DB
	path string // "" in memory
}

// pragmas are set on each connection. With WAL, readers do not wait for the writer. Deleted data are
// overwritten. A connection waits for a while if another has locked the file.
var pragmas = []string{"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(ON)", "secure_delete(ON)"}

// Open opens a database, and makes it if there is none: dsn is the path of its file, or [Memory]. The
// folder must exist. An error says what to do about the file, and means that nothing in it has changed.
func Open(ctx context.Context, dsn string) (*DB, error) {
	d := &DB{}
	name := dsn
	if dsn != Memory {
		d.path = dsn
		if err := own(dsn); err != nil {
			return nil, fmt.Errorf("open %s: %w", dsn, err)
		}
		name = (&url.URL{Scheme: "file", OmitHost: true, Path: slashed(dsn)}).String()
	}
	options := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	var err error
	if d.sql, err = sql.Open("sqlite", name+"?"+options.Encode()); err != nil {
		return nil, fmt.Errorf("open %s: %w", dsn, err)
	}
	d.sql.SetMaxOpenConns(1) // one writer; and in memory each connection would be a database
	if err := d.prepare(ctx); err != nil {
		return nil, errors.Join(d.advise(err), d.sql.Close())
	}
	return d, nil
}

// own makes the file if there is none, and lets only its owner read it. SQLite gives the same mode to
// the files that it puts next to it.
func own(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// slashed returns a path as a URI has it; on Windows that of a drive begins with a
// slash (SQLite, URI filenames).
func slashed(path string) string {
	path = filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		path = "/" + path
	}
	return path
}

// prepare looks whether the file is whole, and brings its tables up to date.
func (d *DB) prepare(ctx context.Context) error {
	var found string
	if err := d.sql.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return &damage{found}
	}
	return migrate(ctx, d.sql, versions)
}

// damage is what SQLite reports about a file that is not whole.
type damage struct{ found string }

func (e *damage) Error() string { return e.found }

// advise adds to an error what to do about the file, if it is the file.
func (d *DB) advise(err error) error {
	var broken *damage
	var failed *sqlite.Error
	isDamage := errors.As(err, &broken)
	if errors.As(err, &failed) {
		switch failed.Code() & 0xff { // the primary code
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			isDamage = true
		}
	}
	switch {
	case err == nil || d.path == "":
		return err
	case isDamage:
		return fmt.Errorf("%s is damaged (%s); it was left as it is: put a copy in its place, or move it away to begin without the jobs that it holds", d.path, oneLine(err))
	default:
		return fmt.Errorf("%s: %w", d.path, err)
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Close closes the file.
func (d *DB) Close() error { return d.advise(d.sql.Close()) }
