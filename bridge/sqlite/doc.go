// Package sqlite keeps the jobs of a gateway in SQLite, so that they outlive the process. Who
// does not import it does not link the database.
package sqlite
