// Package provenance tracks where values came from: what labels say of tools and of places in
// results, which values a session has met where, and which parts of a result are not what its
// tool is said to return. It decides nothing. Package gate names the types that most programs need
// as well.
//
//	tool_labels.go, places.go   what the operator says of a tool, and of places in its results
//	labels.go                   what a session has read
//	source.go, origin.go        where a value was met
//	forms.go, hash.go           the forms in which a value is met again, and how they are kept
//	provenance.go, layers.go    what a session knows of values
//	values.go, labelled.go      the values of a document, and those at labelled places
//	shown.go, definitions.go    what a session was shown, and the values of a listing
//	lists.go, others.go         the other values at the place of a result where one is
//	arguments.go, use.go        the arguments of one call, and what holds for them besides
//	private.go, fingerprints.go whether a text holds what is private
//	matches.go, check.go        which labelled places results never have, and what else recorded calls contradict
//	echo.go                     whether a tool repeats its arguments, or what somebody put there
package provenance
