// Package state keeps what a gateway is known by in its state folder: its name, and its
// secret. Each is made once. The caller holds the lock of the folder.
//
// A [Document] is a small list that must hold wherever it is read: API keys, revocations,
// pauses. One gateway keeps it in a file of its state folder; gateways that share a database
// keep it there.
package state
