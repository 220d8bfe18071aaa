package kv_test

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
)

func Example() {
	s, err := kv.Open("", kv.Options{}) // in memory
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	notes := options.ModuleNamespace{Tool: "notes"}
	if err := s.Set(context.Background(), notes, "seen", []byte("yes"), time.Hour); err != nil {
		fmt.Println(err)
	}
	value, found, err := s.Get(context.Background(), notes, "seen")
	fmt.Println(string(value), found, err)
	_, found, err = s.Get(context.Background(), options.ModuleNamespace{Tool: "another"}, "seen")
	fmt.Println(found, err)
	// Output:
	// yes true <nil>
	// false <nil>
}
