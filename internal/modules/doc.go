// Package modules makes of the WASM modules that a configuration names what a gateway
// runs: it reads them from files and registries, holds them against digests and
// signatures, and reads the manifests beside them.
//
//	config.Module -> file or registry -> digest, signature (signed.go) -> manifest (manifest.go) -> gateway.Module
//
// [Reader.All] reads all that a configuration names, for internal/app, and [Reader.Guest] one that
// is a server. One that cannot be read, or is another than was named, is broken, and nothing of it
// is run.
package modules
