// Package state keeps what a gateway is known by in its state folder: its name, and its
// secret. Each is made once. The caller holds the lock of the folder.
package state
