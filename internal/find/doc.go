// Package find finds tools for people and programs at the gateway: by words of their
// definitions, see [Search], and by the name that a server gives its tool, see [Resolve].
package find
