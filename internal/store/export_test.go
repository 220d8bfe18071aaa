package store

import "database/sql"

// Migrate brings the tables of a database up to date by other steps than the program's.
var Migrate = migrate

// SQL returns what is below a DB.
func SQL(d *DB) *sql.DB { return d.sql }
