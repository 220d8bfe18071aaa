// Package pace decides when a server is called, and for how long: whether it is called at all after
// faults in a row ([Circuit]), how long to pause before it is tried again ([Backoff]), and when a
// call has taken too long ([Deadline]).
//
// It knows no connection: package upstream decides what is a fault, and what is repeated.
package pace
