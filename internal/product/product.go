// Package product names this program and its version.
package product

import "runtime/debug"

// Name is how the gateway calls itself.
const Name = "wasmgate"

// version is set by the linker in releases.
var version = ""

// Version returns the version of the module: of a release, else of the commit
// that it was built from, else "dev".
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}
