// Package provenance tracks where values came from: what labels say of tools and of places in
// results, which values a session has met where, and which parts of a result are not what its
// tool is said to return. It decides nothing. Package gate names the types that most programs need
// as well.
//
//	tool_labels.go, places.go   what the operator says of a tool, and of places in its results
//	labels.go                   what a session has read
//	values.go, forms.go         the values of a document, and the forms in which one is met again
//	provenance.go, shown.go     where a session has met them: in results, and in listings
//	lists.go                    the other values at the place of a result where one is
//	use.go                      what holds for the arguments of one call besides
//	matches.go, check.go        which labelled places results never have, and what else recorded calls contradict
//	echo.go                     whether a tool repeats its arguments, or what somebody put there
package provenance
