// Package match matches names against the patterns that configurations contain: a literal, or the
// beginning of one and *.
package match
