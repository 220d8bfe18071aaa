// Package obligation defines the conditions under which a policy allows a call. The set is closed:
// the gate, which meets them, refuses a call whose obligations it does not know.
package obligation
