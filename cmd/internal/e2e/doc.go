// Package e2e runs the built program as its users do: as a process with a configuration file, real
// servers and real clients. It has tests only.
package e2e
