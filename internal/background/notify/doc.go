// Package notify tells people and programs outside of the gateway what they should look at:
// a call that waits for approval, a definition that was quarantined, a server that is
// faulted, a log that cannot be written.
//
// A [Notice] goes to a [Channel]: a webhook, a program of the operator's, or the desktop. No
// call waits for one, and none gives anybody a right: who reads it has to go where approvals
// are given.
package notify
