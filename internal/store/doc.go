// Package store keeps in SQL what must outlive the process: jobs and what came of them.
//
// A [DB] is a [jobs.Store] over SQLite, in one file for its owner alone or in memory.
// What it has been given is in the file when the method returns, and is found there
// after the process has been killed; the loss of power can take the last seconds, but
// never breaks the file. What is given up is overwritten.
//
// The file carries the version of its tables. An older one is brought up to date when
// it is opened, a newer one and one that is damaged are refused and left as they are.
package store
