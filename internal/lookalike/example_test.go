package lookalike_test

import (
	"fmt"

	"github.com/wasmgate/wasmgate/internal/lookalike"
)

func ExampleAlike() {
	for _, name := range []string{"re\u0430d_file", "ReadFile", "read_files", "write_file"} {
		why, alike := lookalike.Alike("read_file", name)
		fmt.Printf("%+q: %t, %q\n", name, alike, why)
	}
	// Output:
	// "re\u0430d_file": true, "the same shape in other characters"
	// "ReadFile": true, "the same but for case, separators and characters of one shape"
	// "read_files": false, ""
	// "write_file": false, ""
}
