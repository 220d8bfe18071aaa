// Package socket finds and dials the control socket of a state folder. It needs nothing
// but the standard library's net, so that what runs for each use of a tool starts at once.
package socket
