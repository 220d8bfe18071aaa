// Package draft guesses the labels of tools by words, for a person to correct.
//
// label.go drafts a tool's labels from its name, definition and results, places.go those of places
// in its results. The commands policy label and policy learn ask.
package draft
