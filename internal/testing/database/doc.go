// Package database starts a PostgreSQL server for tests: a private one, in a temporary folder and
// on a loopback port. Where PostgreSQL is not installed tests are skipped, unless
// WASMGATE_POSTGRES=require.
package database
