// Package hookcommands provides the commands that install and answer the hooks of agents.
package hookcommands
