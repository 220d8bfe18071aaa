// Package tables looks up what lists, such as the grants, have for a principal.
//
// An [Index] is made of a list once, so that a policy asks a list of a thousand entries at the
// cost of a few. A [Lookup] is the built-in function by which the rules of a pack ask: [Grants]
// and [Rates] are those that there are.
package tables
