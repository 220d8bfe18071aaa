package sandbox_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox"
)

// cache is a folder that nobody else may open. It is made when it is needed.
var cache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		log.Fatal(err)
	}
	cache = filepath.Join(dir, "cache")
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		log.Fatal(err)
	}
	os.Exit(code)
}

func Example() {
	ctx := context.Background()
	runtime, err := sandbox.New(ctx, sandbox.Config{CacheDir: cache, Limits: sandbox.Limits{Memory: 32 << 20}})
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
