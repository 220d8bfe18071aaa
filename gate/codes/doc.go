// Package codes names outcomes of a call that are not refusals, and that no other package names for
// its own errors.
package codes
