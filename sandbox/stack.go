package sandbox

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
)

const (
	// keptStack is the size in bytes up to which the stack of a function is kept
	// for the next call: most guests need less.
	keptStack = 256 << 10
	// deepFuel is how many instructions a guest executes before its stack can be
	// larger than that: each costs some of it.
	deepFuel = 1 << 14
)

// stackSize is how many bytes the stack of a function has, which grows and never
// shrinks. The engine does not tell: this reads a field of its own. If the field is
// not there, the size is unknown, and -1; a test notices.
func stackSize(f api.Function) int64 {
	of := &stackOf
	of.once.Do(func() { of.typ, of.known = reflect.TypeOf(f), findStack(reflect.TypeOf(f), &of.offset) })
	if !of.known || reflect.TypeOf(f) != of.typ {
		return -1
	}
	// Not by reflection, which takes as long as all else at the end of a slice.
	return int64(len(*(*[]byte)(unsafe.Add(reflect.ValueOf(f).UnsafePointer(), of.offset))))
}

// stackOf is the type of the engine's functions, and where in them their stack is.
var stackOf struct {
	once   sync.Once
	typ    reflect.Type
	offset uintptr
	known  bool
}

func findStack(t reflect.Type, offset *uintptr) bool {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	f, ok := t.Elem().FieldByName("stack")
	*offset = f.Offset
	return ok && f.Type == reflect.TypeFor[[]byte]() && len(f.Index) == 1
}

// dropStacks gives up the functions whose stacks have become large.
func (in *instance) dropStacks() {
	for name, f := range in.functions {
		if size := stackSize(f); size < 0 || size > keptStack {
			delete(in.functions, name)
		}
	}
}
