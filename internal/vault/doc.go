// Package vault keeps credentials in the state folder, sealed: a file for each, under a key
// of its own.
//
// The key file protects copies of the folder, such as backups. It does not protect from who
// runs as the same user.
package vault
