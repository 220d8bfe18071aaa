package schema_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/schema"
)

// TestHammer lets many goroutines compile the same schemas and use what they
// get.
func TestHammer(t *testing.T) {
	c := schema.NewCompiler()
	good, bad := gate.MustDoc(`{"a":["x","y"]}`), gate.MustDoc(`{"a":["x","x"]}`)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				text := fmt.Sprintf(`{"properties":{"a":{"uniqueItems":true,"maxItems":%d}},"propertyNames":{"pattern":"^a"}}`, 2+(g+i)%5)
				s, err := c.Compile(gate.MustDoc(text))
				if err != nil {
					t.Error(err)
					return
				}
				if s.Validate(good) != nil || s.Validate(bad) == nil {
					t.Errorf("%s: wrong answer", text)
				}
			}
		})
	}
	wg.Wait()
}
