// Package show writes what people read on a terminal.
package show
