// Package modules turns the WASM modules that a configuration names into modules that a gateway can
// run: it reads them from files and registries, checks them against digests and signatures, and reads
// the manifests next to them.
//
//	config.Module -> file or registry -> digest, signature (signed.go) -> manifest (manifest.go) -> gateway.Module
//
// [Reader.All] reads all that a configuration names, for internal/app, and [Reader.Guest] one that is a
// server. A module that cannot be read, or does not match what was named, is broken, and is never run.
package modules
