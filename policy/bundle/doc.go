// Package bundle reads bundles of policies in OPA's format, and verifies their signatures.
//
// What is read may be hostile: it is bounded, and a bundle that is not as its format says is an
// error. Whether its rules compile and its tests pass, package policy finds out when it loads it.
package bundle
