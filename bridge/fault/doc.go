// Package fault describes what went wrong with one server: where ([Kind]), in words for the
// operator ([Fault.Error]), and in words that a client may read ([Fault.Public]).
package fault
