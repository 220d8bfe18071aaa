// Package rig provides what the tests of bridge's packages share: servers with given answers,
// servers that lie, a gate whose parts refuse nothing, a host in front of it, and clients of every
// kind. Only tests import it.
package rig
