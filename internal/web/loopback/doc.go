// Package loopback recognizes the names and addresses of this machine itself.
package loopback
