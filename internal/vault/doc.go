// Package vault keeps credentials in the state folder, sealed: a file for each, under a key
// of its own.
//
// The key is in a file, an environment variable or the keyring of the system's user. The file
// protects copies of the folder, such as backups. It does not protect from who runs as the same
// user. Gateways that share a database keep the same there, under a key that they share.
package vault
