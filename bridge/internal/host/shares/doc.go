// Package shares gives out a bounded number of places, so that no client can keep others out of
// them.
package shares
