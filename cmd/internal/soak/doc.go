//go:build linux

// Command soak shakes a running gateway, as a process of its own: two servers on standard input and
// output, both of them this program (one with a process for each client, one shared by all),
// clients of three sorts over HTTP (with a session, with one and something that they can be asked,
// without), calls of all kinds, and every so often something that an operator does, or that befalls
// one. At the end it joins what the servers saw, what the clients got and what the log has, and
// fails if they disagree:
//
//	every call that a server saw has its records, and is seen no more often than granted
//	no call that a client reads as refused before it left was seen by a server
//	no client reads another's answer, or hears of a change that was none
//	what the gateway holds once all clients have gone is what it held before
//
// .ci/soak runs it.
package main
