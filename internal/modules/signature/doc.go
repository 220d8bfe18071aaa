// Package signature checks who has signed a file or an artifact of a registry: signatures by
// a key, as cosign makes them, without any service.
//
// A signature of a file is a bundle of `cosign sign-blob --key KEY --bundle FILE`, in the
// format of Sigstore (version 0.1 to 0.3) or in that of cosign before version 3. A signature
// of an artifact is what `cosign sign --key KEY` attaches to it: a payload of "simple
// signing" with its signature, or a bundle with a statement about it.
//
// What else is in a bundle is not looked at: entries of a transparency log and timestamps
// add nothing where a key is trusted. Signatures by certificates (keyless) are refused.
package signature
