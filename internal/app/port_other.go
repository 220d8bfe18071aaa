//go:build !linux

package app

// portHolder names the process that listens on the port of addr. Here there is
// no way to see it without other programs.
func portHolder(string) string { return "" }
