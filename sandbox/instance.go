package sandbox

import (
	"context"
	"errors"
	"reflect"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmgate/wasmgate/sandbox/internal/image"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// An instance is a module with a memory. One call uses it at a time.
type instance struct {
	module  *Module
	memory  *image.Memory
	mod     api.Module
	fuel    meterGlobals
	globals []api.MutableGlobal // of a sealed module
	call    *call               // that uses it now

	functions map[string]api.Function
}

// allocator gives an instance its memory. A module has one memory at most.
type allocator struct{ memory *image.Memory }

// Allocate implements [experimental.MemoryAllocator].
func (a allocator) Allocate(_, _ uint64) experimental.LinearMemory { return a.memory }

// instantiate makes an instance for c, of a memory that is as the image. A
// module that is not sealed runs its start function here.
func (m *Module) instantiate(c *call, memory *image.Memory) (_ *instance, err error) {
	in := &instance{module: m, memory: memory, call: c, functions: map[string]api.Function{}}
	c.instance = in
	memory.Grow = in.grow
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	ctx := experimental.WithMemoryAllocator(c, allocator{memory})
	if in.mod, err = m.runtime.engine.InstantiateModule(ctx, m.compiled, config); err != nil {
		return nil, err
	}
	in.fuel = globalsOf(in.mod)
	for i := range m.sealedGlobals() {
		in.globals = append(in.globals, in.mod.ExportedGlobal(rewrite.GlobalName(i)).(api.MutableGlobal))
	}
	return in, nil
}

// grow is asked before the memory grows.
func (in *instance) grow(used, size uint64) bool {
	c := in.call
	if c == nil || size <= uint64(in.module.minMemory) {
		return true // the host makes the memory as large as its image, or as the module begins
	}
	if size > uint64(c.limits.Memory) {
		c.deniedMemory = true
		return false
	}
	c.meter.charge(size - used) // the new pages have to be cleared
	return true
}

// function returns an exported function, nil if there is none. Each has a stack
// of its own, which it keeps.
func (in *instance) function(name string) api.Function {
	f, ok := in.functions[name]
	if !ok {
		if f = in.mod.ExportedFunction(name); f != nil {
			in.functions[name] = f
		}
	}
	return f
}

// enlarge makes the memory as large as the image.
func (in *instance) enlarge(size int64) error {
	missing := size - int64(in.mod.Memory().Size())
	if missing <= 0 {
		return nil
	}
	if _, ok := in.mod.Memory().Grow(uint32(missing / image.PageSize)); !ok {
		return errors.New("the memory does not take the snapshot")
	}
	return nil
}

// load sets the globals to those of the snapshot.
func (in *instance) load(globals []uint64) {
	for i, g := range in.globals {
		g.Set(globals[i])
	}
}

// reset puts the instance back to the snapshot. After an error it must be closed.
func (in *instance) reset(s *snapshot) error {
	if in.mod.IsClosed() {
		return errors.New("the instance is closed")
	}
	size := s.image.Size()
	grown := int64(in.mod.Memory().Size()) > size
	if err := in.memory.Reset(); err != nil {
		return err
	}
	if grown && (!canShrink() || !shrink(in.mod.Memory(), in.memory, size)) {
		return errors.New("the memory has grown, which cannot be undone here")
	}
	in.load(s.globals)
	return nil
}

// shrink makes a memory as small as its image again. The engine has no way to do
// that, but it makes its view of the memory anew when the memory grows: so it is
// given one that lacks a page, and grows by it. What was expected of the engine
// is checked in the end.
func shrink(of api.Memory, memory *image.Memory, size int64) (ok bool) {
	if size < image.PageSize {
		return false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	reflect.ValueOf(of).Elem().FieldByName("Buffer").SetBytes(memory.Shrunk())
	_, ok = of.Grow(1)
	return ok && int64(of.Size()) == size
}

// close frees the instance and returns its memory.
func (in *instance) close(ctx context.Context) *image.Memory {
	_ = in.mod.Close(ctx) // frees no more than memory; its error is always nil
	in.call = nil
	return in.memory
}
