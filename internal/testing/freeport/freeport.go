// Package freeport finds ports for tests that say where a program listens before it does.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

var given sync.Map

// Port returns a port of this machine on which no program listens. It is below those that systems give
// out by themselves, so that no other test gets it meanwhile, and given once in a process.
func Port(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 20_000 + rand.IntN(10_000)
		if _, known := given.LoadOrStore(port, true); known {
			continue
		}
		if ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			ln.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// Address is the address of a [Port] on loopback.
func Address(t testing.TB) string {
	t.Helper()
	return "127.0.0.1:" + strconv.Itoa(Port(t))
}
