// Package respond writes what a host sends over HTTP: one document ([JSON]), or a stream of events
// ([Sink]). Events that were sent are kept for clients that come back ([Kept]).
//
// It knows bytes, and neither sessions nor messages: the host knows whose a stream is, and what
// happens to a call if its client goes away.
package respond
