//go:build linux

// Command soak shakes a running gateway: real servers and clients, calls of all kinds, and every
// so often something that an operator does, or that befalls one. At the end it joins what the
// servers saw, what the clients were told and what the log has, and fails if they disagree:
//
//	every call that a server saw has its records, and is seen no more often than granted
//	no call that a client reads as refused before it left was seen by a server
//	no client reads another's answer, or hears of a change that was none
//	what the gateway holds once all clients have gone is what it held before
//
// .ci/soak runs it.
package main
