// Package plain reads the paths and URLs that have one reading on every system and in every
// library; what is not known to be plain is none. Its functions are linear in the length of what
// they read.
package plain
