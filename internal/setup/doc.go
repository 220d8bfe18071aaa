// Package setup makes the first configuration of somebody, of the servers that their clients
// have.
//
//	files of clients -> setup.go: their servers -> ask.go: what a person wants of them, a [Plan]
//	  -> setup.go, Write: the gateway's own files -> next.go: what is left to do
//
// The command init is its only caller. No file of a client is written.
package setup
