// Package loopback tells this machine's own name from others.
package loopback
