// Package plain carries plain requests to one HTTP server, over connections that are kept: a
// request is one write, and its answer is read on the goroutine that asks. The transport of
// net/http has two goroutines for each connection, and each call wakes both.
//
// Nothing here parses: an answer is what [http.ReadResponse] reads of it. What is no plain
// request, as [Client.Takes] says, is for net/http, and so are servers behind TLS. How an
// exchange ends otherwise, with half an answer, an early one, too large a head or a connection
// that had gone, is what it is with [http.Transport]; a test compares both.
package plain
