// Package respond writes what a host sends over HTTP: one document ([JSON]), or a stream of
// events ([Sink]). What was sent on streams is kept for clients that come back ([Kept]).
//
// It knows bytes, and neither sessions nor messages: which stream is whose, and what a client
// that has gone away means for its call, is the host's.
package respond
