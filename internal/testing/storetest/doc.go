// Package storetest tests what keeps the state of a gateway, with one suite for each interface. Every implementation runs it: memory, files, SQLite, PostgreSQL.
package storetest
