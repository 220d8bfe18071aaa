// Package draft guesses the labels of tools by words, for a person to correct.
package draft
