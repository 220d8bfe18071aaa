// Package artifact turns a reference to a WASM module into verified bytes.
//
// A reference is the path of a file, or a module in an OCI registry, always with
// the digest of its manifest:
//
//	tools/text.wasm
//	oci://ghcr.io/someone/tool:v1@sha256:... (the tag is for the reader)
//
// What is promised:
//
//   - Nothing is used that was not verified: the manifest against the reference,
//     each blob against the digest and size in the manifest, and both again when
//     they are read from the cache.
//   - Registries are reached by HTTPS only. One on this machine (localhost or a
//     loopback address) is reached by plain HTTP, and only then may a redirect be
//     plain HTTP, to this machine.
//   - Credentials come from the Docker configuration file, and go to the registry
//     that they stand for and to the token endpoint that it names; a redirect to
//     another host carries none. Credential helpers are not run.
//   - Sizes, redirects, retries and time are bounded. Archives are unpacked in
//     memory; no name in them is ever used as a path.
//
// The module is found among the layers by media type, else in a container image
// as the one *.wasm file at the root of its layers (which is how hyper-mcp
// publishes plug-ins), else as the only layer. Several candidates are an error: a
// guess would be somebody else's choice.
//
// What is not promised: whether the module is a good one. Signatures are not
// checked, and WebAssembly is recognized by the first four bytes of a file only.
package artifact
