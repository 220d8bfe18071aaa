package sandbox

import (
	"bytes"
	"context"
	"errors"
	"reflect"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmgate/wasmgate/sandbox/internal/image"
)

// An instance is a module with a memory. One call uses it at a time.
type instance struct {
	least   uint64 // bytes of memory with which the module begins
	memory  *image.Memory
	mod     api.Module
	fuel    meterGlobals
	globals []api.MutableGlobal // of a sealed module
	user    user                // that uses it now; nil if none does

	functions map[string]api.Function
}

// allocator gives an instance its memory. A module has one memory at most.
type allocator struct{ memory *image.Memory }

// Allocate implements [experimental.MemoryAllocator].
func (a allocator) Allocate(_, _ uint64) experimental.LinearMemory { return a.memory }

// A user is the call that uses an instance.
type user interface {
	// grow is asked before the memory grows, from the bytes that are used.
	grow(used, size uint64) bool
}

// grow is asked before the memory grows.
func (in *instance) grow(used, size uint64) bool {
	if in.user == nil || size <= in.least {
		return true // the host makes the memory as large as its image, or as the module begins
	}
	return in.user.grow(used, size)
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
	in.user = nil
	return in.memory
}

// A snapshot is the state in which the instances of a module begin. A sealed module holds neither
// its memory nor its globals, which are all that changes.
type snapshot struct {
	image   *image.Image
	globals []uint64
}

// snapshot returns the state of an instance, to which memories are reset by a method.
func (in *instance) snapshot(by image.Method) (*snapshot, error) {
	s := &snapshot{}
	for _, g := range in.globals {
		s.globals = append(s.globals, g.Get())
	}
	content, ok := in.mod.Memory().Read(0, in.mod.Memory().Size())
	if !ok {
		return nil, errors.New("sandbox: the memory cannot be read")
	}
	var err error
	s.image, err = image.NewWith(by, bytes.TrimRight(content, "\x00"), int64(len(content)))
	return s, err
}
