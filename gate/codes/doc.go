// Package codes has the words for what came of a call that is no refusal and that no other
// package says of its own errors.
package codes
