// Package storetest has a suite of tests for each interface behind which a gateway keeps its
// state. Every implementation runs it: memory, files, SQLite, PostgreSQL.
package storetest
