// Package show writes what people read on a terminal.
//
// text.go makes words and lines, table.go tables; browser.go opens a page.
package show
