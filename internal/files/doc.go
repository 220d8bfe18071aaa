// Package files writes files in one step, and locks them against other processes.
//
// files.go replaces files, and locks the file next to them; disk_*.go says what is free, owner_*.go
// keeps the owner, lock_*.go is the system's lock.
package files
