// Package draft guesses the labels of tools by words, for a person to correct.
//
// label.go drafts a tool's labels from its name, definition and results: effects.go what it does,
// arguments.go what its arguments say, places.go what stands where in its results. words.go has
// the words. check.go compares labels with recorded calls. The commands policy label and policy learn ask.
package draft
