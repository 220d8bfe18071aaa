// Package guide tests what README and the pages tell a reader to do. It has tests only.
package guide
