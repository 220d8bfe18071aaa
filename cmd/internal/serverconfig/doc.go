// Package serverconfig provides the commands that add servers to a configuration, remove them, and take other versions.
package serverconfig
