// Package sandboxcommands provides the commands that make, inspect and run modules.
package sandboxcommands
