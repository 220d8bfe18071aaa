// Package engine decides calls by compiled rules.
//
// An [Engine] evaluates the rules on one call (decide.go), or keeps what it can prove no later
// call changes (specialise.go). By partial evaluation it finds out which tools a principal may
// ever call (listing.go), and with which arguments (offer.go). Every evaluation ends after so many steps
// (evaluate.go). How the results read is in package decision.
//
// Other modules see an Engine as that of package policy. The packages below policy see it
// whole, by [Of].
package engine
