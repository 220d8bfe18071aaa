package sandbox_test

import (
	"context"
	"fmt"
	"log"

	"github.com/wasmgate/wasmgate/sandbox"
)

func Example() {
	ctx := context.Background()
	runtime, err := sandbox.New(ctx, sandbox.Config{Limits: sandbox.Limits{Memory: 32 << 20}})
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close(ctx)
	wasm, err := sandbox.EmbeddedTools()
	if err != nil {
		log.Fatal(err)
	}
	module, err := runtime.Compile(ctx, wasm, sandbox.ModuleConfig{Name: "embedded"})
	if err != nil {
		log.Fatal(err)
	}
	result, err := module.Call(ctx, "hash", []byte(`{"text":"wasmgate"}`), sandbox.CallConfig{})
	if err != nil {
		log.Fatal(err) // a *sandbox.Trap if the guest failed
	}
	fmt.Println(result.IsError, string(result.Output))
	// Output:
	// false {"algorithm":"sha256","hex":"597991db61cfb03662307d4e627c26432e6cd03127044a76d361c0fe54e0546e","bytes":8}
}
