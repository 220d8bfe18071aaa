package sandbox

import (
	"context"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmgate/wasmgate/sandbox/internal/image"
)

// grower is a module with one page of memory that exports size: memory.size, and
// grow: memory.grow by 3 pages.
var grower = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x05\x01\x60\x00\x01\x7f" + // a type: nothing to i32
	"\x03\x03\x02\x00\x00" +
	"\x05\x03\x01\x00\x01" +
	"\x07\x0f\x02\x04size\x00\x00\x04grow\x00\x01" +
	"\x0a\x0d\x02\x04\x00\x3f\x00\x0b\x06\x00\x41\x03\x40\x00\x0b")

// canShrink finds out, once, whether [shrink] does what it should with this
// version of the engine: whether the guest sees it as well.
var canShrink = sync.OnceValue(func() bool {
	ctx := context.Background() // of no call, and for all of them
	i, err := image.New([]byte("image"), image.PageSize)
	if err != nil {
		return false
	}
	defer i.Close()
	memory, err := i.NewMemory(8 * image.PageSize)
	if err != nil {
		return false
	}
	defer memory.Close()
	engine := wazero.NewRuntime(ctx)
	defer engine.Close(ctx)
	mod, err := engine.InstantiateWithConfig(experimental.WithMemoryAllocator(ctx, allocator{memory}), grower, wazero.NewModuleConfig())
	if err != nil {
		return false
	}
	for range 2 {
		if _, err := mod.ExportedFunction("grow").Call(ctx); err != nil || memory.Reset() != nil || !shrink(mod.Memory(), memory, image.PageSize) {
			return false
		}
		size, err := mod.ExportedFunction("size").Call(ctx)
		if err != nil || size[0] != 1 {
			return false
		}
	}
	return true
})
