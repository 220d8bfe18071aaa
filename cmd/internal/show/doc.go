// Package show writes what people read on a terminal.
//
// text.go makes words and lines, table.go tables, json.go what programs read.
package show
