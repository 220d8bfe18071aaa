// Package definitioncommands provides the commands that show, scan and approve the definitions of servers.
package definitioncommands
