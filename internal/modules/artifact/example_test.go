package artifact_test

import (
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/internal/modules/artifact"
)

func ExampleParse() {
	for _, s := range []string{"tools/text.wasm", "oci://ghcr.io/someone/tool:v1@sha256:" + strings.Repeat("0a", 32), "oci://ghcr.io/someone/tool:v1"} {
		r, err := artifact.Parse(s)
		switch {
		case err != nil:
			fmt.Println(err)
		case r.Path != "":
			fmt.Println("file", r.Path)
		default:
			fmt.Println("registry", r.Registry, "repository", r.Repository)
		}
	}
	// Output:
	// file tools/text.wasm
	// registry ghcr.io repository someone/tool
	// artifact: "oci://ghcr.io/someone/tool:v1": has no digest, so that its content could change: append @sha256:..., as printed by 'oras resolve ghcr.io/someone/tool:v1'
}
