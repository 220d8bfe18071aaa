package doc_test

import (
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
)

func ExampleMapStrings() {
	d := doc.Must(`{"n": 12345678901234567890, "s": ["shout"]}`)
	loud, err := doc.MapStrings(d, func(at doc.Leaf, s string) string {
		if at.Key {
			return s
		}
		return strings.ToUpper(s)
	})
	fmt.Println(loud, err)
	// Output: {"n": 12345678901234567890, "s": ["SHOUT"]} <nil>
}
