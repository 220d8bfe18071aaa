// Package rig has what the tests of bridge's packages share: servers that answer as they
// are told, or lie; a gate whose parts stand in no way; a host in front of it, and clients
// of every kind. Only tests import it.
package rig
