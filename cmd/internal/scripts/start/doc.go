// Package start tests the commands with which a person starts: settings, servers and clients. It has tests only.
package start
