// Package serverconfig provides the commands that add servers to a configuration.
package serverconfig
