// Package shares gives out a bounded number of places, such that nobody can keep others
// out of them.
package shares
