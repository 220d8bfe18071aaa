// Package modules makes of the WASM modules that a configuration names what a gateway
// runs: it reads them from files and registries, holds them against digests and
// signatures, and reads the manifests beside them.
package modules
