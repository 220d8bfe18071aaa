// Package notify reports to people and programs outside of the gateway what they should look at: a call
// that waits for approval, a definition that was quarantined, a server that is faulted, a log that
// cannot be written.
//
// A [Notice] goes to a [Channel]: a webhook, a program of the operator's, or the desktop. No call waits
// for a notice, and a notice gives no rights: its reader has to go where approvals are given.
package notify
