// Package lock compares what servers declare with what was approved.
//
// A server is free to change the definitions of its tools at any time, and an
// agent does what definitions say. So each definition is known by its digest,
// over its canonical form (RFC 8785): of names, descriptions, schemas,
// annotations and every other member, only the order of keys may change without
// notice. What the server itself is, its [Identity], its instructions, and the modules
// in which its tools run are pinned in the same way. kinds.go lists what is pinned.
//
// A [File] is wasmgate.lock, which a person approves and keeps under version
// control. Nothing in this package writes it but [Approve]. For a server that is
// not in it, [Pins] trusts what it declares when it is first seen, and keeps that
// in a folder of the gateway, unless the mode is [options.PinStrict]. Gateways that
// [Pins.Share] keep both in a database.
//
// What is new or has changed is quarantined: [Pins.Check] refuses it. What it
// says is not judged: a definition that was approved is trusted, however it reads.
package lock
