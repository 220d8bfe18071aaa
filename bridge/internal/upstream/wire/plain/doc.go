// Package plain carries plain requests to one HTTP server, over connections that are kept. A
// request is one write, and its answer is read on the goroutine that asks. The transport of
// net/http has two goroutines for each connection, and each call wakes both.
//
// This package parses nothing itself: [http.ReadResponse] reads the answers. Requests that are not
// plain ([Client.Takes]) go through net/http, and so do those to servers behind TLS. If an exchange
// ends otherwise, with half an answer, an early one, too large a head or a connection that had
// gone, the outcome is the same as with [http.Transport]; a test compares both.
package plain
