// Package e2e holds the tests that run the built program as its users do: as a process with a
// configuration file, real servers and real clients. gateway shows what a gateway does when its
// policy, its servers or its clients change, fail or attack; real runs servers and clients that others
// have made; modules runs tools in the sandbox; guide follows what README and the pages tell a reader.
// What they share is in internal/testing/e2e.
package e2e
