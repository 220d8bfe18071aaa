// Package owned names what belongs to the gateway in policies: files and bundles may add to some
// of it, and define none of it.
package owned

// Folders in which packs and bundles are in messages and reports. No path in an
// fs.FS has two slashes in a row, so no user's file can be there.
const (
	PackFolder   = "pack://"
	BundleFolder = "bundle://" // followed by the bundle's name and /
)

// Root is the package to whose sets all sources add, so several bundles may have it as a root.
const Root = "wasmgate"

// Sets are those of the package [Root] to which all sources add. A decision is made of them.
var Sets = []string{"allow", "ask", "deny", "obligations", "labels"}

// Data is the data that the gateway provides, or OPA itself; data.wasmgate is the
// rules'.
var Data = []string{"grants", "labels", "ratelimit", "system"}
