//go:build !linux

package web

// PortHolder names the process that listens on the port of addr. Here there is
// no way to see it without other programs.
func PortHolder(string) string { return "" }
